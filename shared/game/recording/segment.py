"""The segment archive: one zip with everything needed to judge, learn from and replay 300 steps.

Members: manifest.json (with the SHA-256 of each other member), states.jsonl, before.json (the state before the first
action, as a line of states.jsonl), obs.npy (steps+1 x 128 float32),
counters.npy (steps+1 x N uint16, see observation/counters.py), actions.npy, prefix.npy (the actions of the episode
before the segment), start.state (the emulator's state at the episode's start, zlib) and frames/NNNN.png; runs with a
planner add actor.npy (who chose each action).
`start.state`, the seed, the prefix and the actions reproduce every frame.

Equal content gives equal bytes: a segment recorded again after a crash is the same object.
"""

import io
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shared.contracts.archive import MAX_UNPACKED, SegmentArchive, open_archive
from shared.contracts.base import sha256
from shared.contracts.segment import (
    ACTIONS,
    ACTOR,
    BEFORE,
    COUNTERS,
    FRAMES,
    MANIFEST,
    OBSERVATIONS,
    PREFIX,
    START_STATE,
    STATES,
    SegmentManifest,
)
from shared.errors import ContractError
from shared.game.decoding.names import BUTTON_OF_ACTION
from shared.game.recording.recorded_states import Counts, Observations, RecordedStates

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the time of every member: the bytes depend on the content alone
_STORED: Final = (START_STATE, FRAMES)  # already compressed
_NEEDED: Final = {STATES, OBSERVATIONS, ACTIONS, PREFIX, START_STATE}
_NPY: Final = (1, 0)  # format of the arrays

ACTORS: Final = ("policy", "planner", "guidance", "option")
"""The numbers of actor.npy in words. Under guidance the policy acts, and sees a suggestion. In an option the executor
acts: the policy chose a macro."""
POLICY, PLANNER, GUIDANCE, OPTION = range(len(ACTORS))

Actions = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Segment:
    """An archive's content. `frames` are PNG files by step; `start_state` is what `Emulator.load` takes."""

    manifest: SegmentManifest
    states: str  # one JSON line a step, see rows.StateRow
    observations: Observations
    actions: Actions
    prefix: Actions
    start_state: bytes
    frames: Mapping[int, bytes]
    counters: Counts | None
    """(steps + 1, N) of the layout that the manifest names; None in archives older than 2026-11-23."""
    actors: Actions | None = None
    """Who chose each action, see ACTORS; None where only the policy acted."""

    def states_in(self, view: str) -> Observations:
        """All states (steps + 1, D) as a model of this view sees them; ContractError if recorded without it."""
        known = self.manifest
        states = RecordedStates(known.segment, known.observation, self.observations, known.counters, self.counters)
        return states.in_view(view)


def frame_name(step: int) -> str:
    """Member name of the picture after `step` steps of the segment (0 is before the first)."""
    return f"{FRAMES}{step:04d}.png"


def write_segment(facts: Mapping[str, Any], content: "Members") -> bytes:
    """The archive's bytes. `facts` are the manifest's fields except `members`, which this function computes."""
    members = content.files()
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
    """The content of an archive except its manifest. `packed_start` is a result of `pack_state`.

    `lines` are rows of states after each action, `before` is the one before the first.
    """

    lines: Sequence[str]
    observations: Observations
    actions: Actions
    prefix: Actions
    packed_start: bytes
    frames: Mapping[int, bytes]
    counters: Counts | None = None
    actors: Actions | None = None
    before: str | None = None

    def files(self) -> dict[str, bytes]:
        """Member name -> bytes, in the order in which they are written."""
        return {
            STATES: ("\n".join(self.lines) + "\n").encode(),
            **({} if self.before is None else {BEFORE: self.before.encode()}),
            OBSERVATIONS: _npy(self.observations),
            **({} if self.counters is None else {COUNTERS: _npy(self.counters)}),
            ACTIONS: _npy(self.actions),
            **({} if self.actors is None else {ACTOR: _npy(self.actors)}),
            PREFIX: _npy(self.prefix),
            START_STATE: self.packed_start,
            **{frame_name(step): picture for step, picture in sorted(self.frames.items())},
        }


def read_segment(raw: bytes) -> Segment:
    """Unpack an archive and check every member against the manifest; DigestMismatch or ContractError otherwise."""
    with open_archive(raw) as archive:
        manifest, members = archive.manifest, _members(archive)
        observations = _array(members[OBSERVATIONS], OBSERVATIONS, np.dtype("<f4"), 2)
        actions = _array(members[ACTIONS], ACTIONS, np.dtype("u1"), 1)
        if len(actions) != manifest.steps or len(observations) != manifest.steps + 1:
            raise ContractError(
                f"segment {manifest.segment}: {len(actions)} actions and {len(observations)} observations "
                f"for {manifest.steps} steps"
            )
        if not np.isfinite(observations).all():
            raise ContractError(f"segment {manifest.segment}: an observation is not a finite number")
        prefix = _array(members[PREFIX], PREFIX, np.dtype("u1"), 1)
        if max(actions.max(), prefix.max(initial=0)) >= len(BUTTON_OF_ACTION):
            raise ContractError(f"segment {manifest.segment}: an action is outside 0 to {len(BUTTON_OF_ACTION) - 1}")
        return Segment(
            manifest=manifest,
            states=members[STATES].decode(),
            observations=observations,
            actions=actions,
            prefix=prefix,
            start_state=unpack_state(members[START_STATE]),
            counters=_counters(members.get(COUNTERS), manifest),
            actors=_actors(members.get(ACTOR), manifest),
            frames={int(name[len(FRAMES) : -4]): data for name, data in members.items() if name.startswith(FRAMES)},
        )


@lru_cache(maxsize=64)
def pack_state(state: bytes) -> bytes:
    """Compress a saved state for the archive (186 kB to a few kB); cached per process."""
    return zlib.compress(state, 6)


def unpack_state(packed: bytes) -> bytes:
    """The inverse of `pack_state`, bounded."""
    try:
        unpacker = zlib.decompressobj()
        state = unpacker.decompress(packed, MAX_UNPACKED)
    except zlib.error as error:
        raise ContractError(f"{START_STATE} does not unpack: {error}") from error
    if unpacker.unconsumed_tail:
        raise ContractError(f"{START_STATE} is larger than any saved state")
    if not unpacker.eof:
        raise ContractError(f"{START_STATE} is cut short")
    return state


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_STORED if name.startswith(_STORED) else zipfile.ZIP_DEFLATED
    archive.writestr(info, data, compresslevel=1)


def _members(archive: SegmentArchive) -> dict[str, bytes]:
    segment, listed = archive.manifest.segment, set(archive.manifest.members)
    if odd := archive.names ^ listed:
        raise ContractError(f"segment {segment}: missing or unlisted members: {', '.join(sorted(odd)):.200}")
    if absent := _NEEDED - listed:
        raise ContractError(f"segment {segment}: without {', '.join(sorted(absent))}")
    return {name: archive.read(name) for name in sorted(listed)}


def _counters(data: bytes | None, manifest: SegmentManifest) -> Counts | None:
    if data is None:
        return None
    counts = _array(data, COUNTERS, np.dtype("<u2"), 2)
    if len(counts) != manifest.steps + 1:
        raise ContractError(f"segment {manifest.segment}: {len(counts)} rows of counters for {manifest.steps} steps")
    return counts


def _actors(data: bytes | None, manifest: SegmentManifest) -> Actions | None:
    if data is None:
        return None
    actors = _array(data, ACTOR, np.dtype("u1"), 1)
    if len(actors) != manifest.steps or actors.max(initial=0) >= len(ACTORS):
        raise ContractError(f"segment {manifest.segment}: {ACTOR} is not one of {len(ACTORS)} actors a step")
    return actors


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=_NPY, allow_pickle=False)
    return buffer.getvalue()


def _array(data: bytes, name: str, kind: np.dtype[Any], dimensions: int) -> NDArray[Any]:
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != _NPY:
        raise ContractError(f"{name} is not an array of version {_NPY[0]}.{_NPY[1]}")
    shape, by_columns, found = np.lib.format.read_array_header_1_0(stream)
    if (found, len(shape), by_columns) != (kind, dimensions, False):
        raise ContractError(f"{name} is {found} with {len(shape)} dimensions, not {kind} with {dimensions}")
    numbers: NDArray[Any] = np.frombuffer(data, kind, offset=stream.tell())
    if min(shape) < 0 or numbers.size != math.prod(shape):
        raise ContractError(f"{name} holds {numbers.size} numbers, and says {shape}")
    return numbers.reshape(shape)
