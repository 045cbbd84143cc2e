"""The segment archive: one zip that holds all that is needed to judge, to learn from and to replay 300 steps.

Members: manifest.json (with the SHA-256 of each other member), states.jsonl, obs.npy (steps+1 x 128 float32),
actions.npy, prefix.npy (the actions of the episode before the segment), start.state (the emulator's state at the
episode's start, zlib) and frames/NNNN.png. `start.state`, the seed, the prefix and the actions reproduce every frame.

The same content gives the same bytes: a segment that is recorded again after a crash is the same object.
"""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shared.contracts.base import sha256
from shared.contracts.segment import (
    ACTIONS,
    FRAMES,
    MANIFEST,
    OBSERVATIONS,
    PREFIX,
    START_STATE,
    STATES,
    SegmentManifest,
)
from shared.errors import ContractError
from shared.game.errors import SegmentDamaged

MAX_ARCHIVE: Final = 64 * 1024 * 1024  # bytes unpacked; a segment has about 1 MB, more is an attack or a mistake
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the time of every member, so that the bytes depend on the content alone
_STORED: Final = (START_STATE, FRAMES)  # compressed already

Actions = NDArray[np.uint8]
Observations = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Segment:
    """An archive's content. `frames` are PNG files by step; `start_state` is what `Emulator.load` takes."""

    manifest: SegmentManifest
    states: str
    observations: Observations
    actions: Actions
    prefix: Actions
    start_state: bytes
    frames: Mapping[int, bytes]

    @property
    def lines(self) -> list[str]:
        """One JSON line a step, see rows.StateRow."""
        return self.states.splitlines()


def frame_name(step: int) -> str:
    """Member name of the picture after `step` steps of the segment (0 is before the first)."""
    return f"{FRAMES}{step:04d}.png"


def write_segment(facts: Mapping[str, Any], segment_members: "Members") -> bytes:
    """The archive's bytes. `facts` are the fields of the manifest but `members`, which are computed here."""
    members = segment_members.files()
    digests = {name: sha256(data) for name, data in members.items()}
    manifest = SegmentManifest.model_validate({**facts, "members": digests})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        _add(archive, MANIFEST, manifest.to_bytes())
        for name, data in members.items():
            _add(archive, name, data)
    return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class Members:
    """What goes into an archive besides its manifest. `packed_start` is the start state after `pack_state`."""

    lines: Sequence[str]
    observations: Observations
    actions: Actions
    prefix: Actions
    packed_start: bytes
    frames: Mapping[int, bytes]

    def files(self) -> dict[str, bytes]:
        """Member name -> bytes, in the order in which they are written."""
        return {
            STATES: ("\n".join(self.lines) + "\n").encode(),
            OBSERVATIONS: _npy(self.observations),
            ACTIONS: _npy(self.actions),
            PREFIX: _npy(self.prefix),
            START_STATE: self.packed_start,
            **{frame_name(step): picture for step, picture in sorted(self.frames.items())},
        }


def read_segment(raw: bytes) -> Segment:
    """Unpack an archive and check every member against the manifest; SegmentDamaged or ContractError otherwise."""
    members = _unpack(raw)
    manifest = SegmentManifest.from_bytes(members.pop(MANIFEST, b""))
    _verify(members, manifest)
    observations = _array(members, OBSERVATIONS, np.dtype("<f4"), 2)
    actions = _array(members, ACTIONS, np.dtype("u1"), 1)
    if len(actions) != manifest.steps or len(observations) != manifest.steps + 1:
        raise SegmentDamaged(
            f"segment {manifest.segment}: {len(actions)} actions and {len(observations)} observations "
            f"for {manifest.steps} steps"
        )
    return Segment(
        manifest=manifest,
        states=members[STATES].decode(),
        observations=observations,
        actions=actions,
        prefix=_array(members, PREFIX, np.dtype("u1"), 1),
        start_state=unpack_state(members[START_STATE]),
        frames={int(name[len(FRAMES) : -4]): data for name, data in members.items() if name.startswith(FRAMES)},
    )


def read_manifest(raw: bytes) -> SegmentManifest:
    """Only the manifest of an archive, without checking its members."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            if archive.getinfo(MANIFEST).file_size > MAX_ARCHIVE:
                raise SegmentDamaged("the manifest is larger than any segment")
            return SegmentManifest.from_bytes(archive.read(MANIFEST))
    except (zipfile.BadZipFile, KeyError, zlib.error) as error:
        raise SegmentDamaged(f"not a segment archive: {error}") from error


def pack_state(state: bytes) -> bytes:
    """Compress a saved state for the archive (186 kB become a few kB)."""
    return zlib.compress(state, 6)


def unpack_state(packed: bytes) -> bytes:
    """The inverse of `pack_state`, bounded."""
    try:
        unpacker = zlib.decompressobj()
        state = unpacker.decompress(packed, MAX_ARCHIVE)
    except zlib.error as error:
        raise SegmentDamaged(f"{START_STATE} does not unpack: {error}") from error
    if unpacker.unconsumed_tail:
        raise SegmentDamaged(f"{START_STATE} is larger than any saved state")
    return state


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_STORED if name.startswith(_STORED) else zipfile.ZIP_DEFLATED
    archive.writestr(info, data, compresslevel=1)


def _unpack(raw: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MAX_ARCHIVE:
                raise SegmentDamaged(f"a segment archive of more than {MAX_ARCHIVE} bytes")
            return {info.filename: archive.read(info) for info in archive.infolist()}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        raise SegmentDamaged(f"not a segment archive: {error}") from error


def _verify(members: Mapping[str, bytes], manifest: SegmentManifest) -> None:
    if set(members) != set(manifest.members):
        odd = ", ".join(sorted(set(members) ^ set(manifest.members)))
        raise SegmentDamaged(f"segment {manifest.segment}: missing or unlisted members: {odd:.200}")
    for name, data in members.items():
        if sha256(data) != manifest.members[name]:
            raise SegmentDamaged(f"segment {manifest.segment}: {name} is not what the manifest says")


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _array(members: Mapping[str, bytes], name: str, kind: np.dtype[Any], dimensions: int) -> NDArray[Any]:
    if name not in members:
        raise SegmentDamaged(f"a segment without {name}")
    try:
        array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(members[name]), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ContractError(f"{name} is not an array: {error}"[:300]) from error
    if array.dtype != kind or array.ndim != dimensions:
        raise ContractError(f"{name} is {array.dtype} with {array.ndim} dimensions, not {kind} with {dimensions}")
    return array
