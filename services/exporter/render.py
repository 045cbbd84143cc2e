"""Turns one segment archive into files for people, by playing it again. Blocking: call it in a worker thread.

The replay is checked against the recorded RAM hashes; a segment that does not replay exactly is never exported.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.exporter.adapters.video import encode_mp4
from services.exporter.domain.caption import caption
from services.exporter.domain.manifest import STATES, VIDEO, ExportManifest, frame_name
from shared.contracts.base import sha256
from shared.contracts.scores import SegmentScores
from shared.errors import Transient
from shared.game.emulator import Emulator
from shared.game.png import palette_png
from shared.game.replay import replay
from shared.game.roms import Game
from shared.game.segment import Segment, read_segment


@dataclass(frozen=True, slots=True)
class Look:
    """How exports look. `scale` enlarges the video by a whole number; `overlay` adds the caption under it."""

    frames: bool = True
    video: bool = True
    scale: int = 3
    overlay: bool = True


@dataclass(frozen=True, slots=True)
class Export:
    """Files by name, and the manifest that lists them."""

    manifest: ExportManifest
    files: dict[str, bytes]


class _WatchedEmulator(Emulator):
    """Stops when nobody waits for it any more: a thread cannot be cancelled, and a long episode plays for minutes."""

    def __init__(self, game: Game, given_up: threading.Event) -> None:
        self._given_up = given_up
        super().__init__(game)

    def step(self, action: int, frames: int, render: bool = False) -> None:
        if self._given_up.is_set():
            raise Transient("replay: nobody waits for it any more")
        super().step(action, frames, render)


def render(
    raw: bytes, game: Game, scores: SegmentScores | None, look: Look, given_up: threading.Event | None = None
) -> Export:
    """Replay the archive and make its files, until `given_up` is set.

    Raises ContractError or DigestMismatch for an archive that is not whole, ReplayMismatch (with both hashes) for one
    that replays to another end.
    """
    segment = read_segment(raw)
    lines = caption(segment.manifest, scores) if look.overlay else []
    frames: dict[str, bytes] = {}
    pictures = _drawn(segment, game, given_up or threading.Event(), frames if look.frames else None)
    files = {STATES: segment.states.encode()}
    if look.video:
        skip = segment.manifest.frame_skip
        files[VIDEO] = encode_mp4(pictures, frame_skip=skip, scale=look.scale, caption=lines)
    for _ in pictures:  # to the end of the replay, where the last hash is compared
        pass
    files |= frames
    manifest = ExportManifest(
        segment=segment.manifest,
        archive=sha256(raw),
        frames=len(frames),
        caption=lines,
        files={name: sha256(data) for name, data in files.items()},
    )
    return Export(manifest, files)


def _drawn(
    segment: Segment, game: Game, given_up: threading.Event, frames: dict[str, bytes] | None
) -> Iterator[NDArray[np.uint8]]:
    """The picture of every step, RGB, beginning with the one before the first action; each also as PNG into `frames`.

    One at a time: 5,000 steps of unpacked pictures would take half a gigabyte.
    """
    emulator = _WatchedEmulator(game, given_up)
    try:
        for moment in replay(segment, emulator, wants_picture=lambda step: True):
            if moment.picture is None:
                continue
            if frames is not None:
                frames[frame_name(moment.step)] = palette_png(moment.picture)
            yield _rgb(moment.picture)
    finally:
        emulator.close()


def _rgb(picture: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Packed little-endian RGBA (144, 160) as RGB (144, 160, 3)."""
    return picture.view(np.uint8).reshape(*picture.shape, 4)[:, :, :3]
