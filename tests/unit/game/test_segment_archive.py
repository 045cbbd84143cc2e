"""An untrusted segment archive: any defect is refused with one sentence and little memory."""

import io
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.contracts import archive as archives
from shared.contracts.archive import MAX_UNPACKED, read_manifest
from shared.contracts.base import sha256
from shared.contracts.segment import ACTIONS, MANIFEST, OBSERVATIONS, PREFIX, START_STATE, STATES, SegmentManifest
from shared.errors import ContractError, Permanent
from shared.game.recording.segment import Members, pack_state, read_segment, write_segment

STEPS: Final = 10
FACTS: Final = {
    "run": "demo", "epoch": 0, "episode": "e0", "segment": "e0-s0", "index": 0, "first_step": 0, "steps": STEPS,
    "game": "bramble", "rom": "0" * 64, "emulator": "pyboy", "frame_skip": 4, "seed": 1, "observation": "obs/v1",
    "ram_start": "1" * 64, "ram_end": "2" * 64, "key_frames": [0], "milestones_start": 0, "milestones_end": 0,
    "milestones_total": 4, "created": datetime.now(UTC),
}  # fmt: skip


@cache
def good() -> bytes:
    """A whole archive."""
    actions = np.zeros(STEPS, np.uint8)
    observations = np.zeros((STEPS + 1, 128), np.float32)
    frames = {0: b"picture"}
    return write_segment(
        FACTS, Members(["{}"] * STEPS, observations, actions, actions[:0], pack_state(b"state"), frames)
    )


def with_members(changed: Mapping[str, bytes | None]) -> bytes:
    """The archive with these members instead (None: without), and a manifest that vouches for them."""
    with zipfile.ZipFile(io.BytesIO(good())) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = SegmentManifest.from_bytes(members.pop(MANIFEST))
    members = {name: data for name, data in {**members, **changed}.items() if data is not None}
    digests = {name: sha256(data) for name, data in members.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, manifest.model_copy(update={"members": digests}).to_bytes())
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def npy(header: str, body: bytes = b"") -> bytes:
    """An array file with this header."""
    text = header.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def numbers(value: float) -> bytes:
    """Observations that are all this number."""
    out = io.BytesIO()
    np.save(out, np.full((STEPS + 1, 128), value, np.float32))
    return out.getvalue()


def presses(action: int, count: int) -> bytes:
    """Actions that are all this one."""
    out = io.BytesIO()
    np.save(out, np.full(count, action, np.uint8))
    return out.getvalue()


def test_complete_archive_is_read() -> None:
    segment = read_segment(good())
    assert segment.observations.shape == (STEPS + 1, 128)
    assert segment.start_state == b"state"
    assert read_segment(with_members({})).frames == {0: b"picture"}


WRONG: Final[dict[str, Callable[[], bytes]]] = {
    "without states": lambda: with_members({STATES: None}),
    "without start state": lambda: with_members({START_STATE: None}),
    "without observations": lambda: with_members({OBSERVATIONS: None}),
    "states that are no text": lambda: with_members({STATES: b"\xff\xfe"}),
    "a picture without a step": lambda: with_members({"frames/x.png": b"picture"}),
    "a start state that is not packed": lambda: with_members({START_STATE: b"state"}),
    "a start state that is cut short": lambda: with_members({START_STATE: pack_state(b"state" * 100)[:-6]}),
    "bytes that are no array": lambda: with_members({OBSERVATIONS: b"\x93NUMPY"}),
    "an array without end": lambda: with_members(
        {OBSERVATIONS: npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 128), }")}
    ),
    "an array of less than nothing": lambda: with_members(
        {OBSERVATIONS: npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 0), }")}
    ),
    "an array with half a header": lambda: with_members({OBSERVATIONS: npy("{'descr': ('''")}),
    "an array of objects": lambda: with_members(
        {OBSERVATIONS: npy("{'descr': '|O', 'fortran_order': False, 'shape': (11, 128), }", b"x" * 11 * 128 * 8)}
    ),
    "a value that is not a number": lambda: with_members({OBSERVATIONS: numbers(float("nan"))}),
    "numbers without bound": lambda: with_members({OBSERVATIONS: numbers(float("inf"))}),
    "an action that no button is for": lambda: with_members({ACTIONS: presses(8, STEPS)}),
    "a prefix with such an action": lambda: with_members({PREFIX: presses(255, 3)}),
    "another way of packing": lambda: _packed_by(zipfile.ZIP_LZMA),
    "a member that is encrypted": lambda: good().replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
    ),
}


def _packed_by(method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good())) as old, zipfile.ZipFile(out, "w", method) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return out.getvalue()


@pytest.mark.parametrize("wrong", WRONG)
def test_damaged_archive_is_refused_in_one_sentence(wrong: str) -> None:
    with pytest.raises(Permanent) as caught:
        read_segment(WRONG[wrong]())
    assert 10 < len(str(caught.value)) < 400


@pytest.mark.parametrize("read", [read_segment, read_manifest])
def test_member_with_a_false_size_is_unpacked_up_to_the_bound(read: Callable[[bytes], object]) -> None:
    size = 16 * MAX_UNPACKED
    packer = zlib.compressobj(9, wbits=-15)
    body = b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, b"x" * 100)
    raw = bytearray(out.getvalue())
    begin = 30 + len(MANIFEST)
    packed = raw.index(b"PK\x01\x02") - begin
    raw[begin : begin + packed] = body
    directory = raw.index(b"PK\x01\x02", begin + len(body) - 4)
    raw[18:22] = raw[directory + 20 : directory + 24] = struct.pack("<I", len(body))
    end = raw.rindex(b"PK\x05\x06")
    raw[end + 16 : end + 20] = struct.pack("<I", directory)

    tracemalloc.start()
    with pytest.raises(ContractError):
        read(bytes(raw))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * MAX_UNPACKED


def test_total_size_of_all_members_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(io.BytesIO(good())) as file:
        total = sum(info.file_size for info in file.infolist())
    monkeypatch.setattr(archives, "MAX_UNPACKED", total)
    with archives.open_archive(good()) as whole:
        assert all(whole.read(name) for name in whole.names)
    monkeypatch.setattr(archives, "MAX_UNPACKED", total - 1)
    with pytest.raises(ContractError, match="unpacks to more than"), archives.open_archive(good()) as whole:
        assert all(whole.read(name) for name in whole.names)


@settings(max_examples=300)
@given(st.integers(0, len(good()) - 1), st.integers(0, 255))
def test_changed_byte_is_detected_or_harmless(place: int, value: int) -> None:
    raw = bytearray(good())
    raw[place] = value
    try:
        segment = read_segment(bytes(raw))
    except Permanent:
        return
    assert (segment.observations == 0).all()
    assert segment.states == "{}\n" * STEPS
