"""Renders one segment archive into files by replaying it. Blocking: call it in a worker thread.

The replay is checked against the recorded RAM hashes; a segment that does not replay exactly is never exported.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from services.exporter.adapters.video import encode_mp4
from services.exporter.domain.caption import acting_notes, caption
from services.exporter.domain.manifest import SAVED_STATE, STATES, VIDEO, ExportManifest, frame_name
from shared.contracts.base import sha256
from shared.contracts.scores import SegmentScores
from shared.errors import Transient
from shared.game.emulator.emulator import Emulator
from shared.game.games.game import Game
from shared.game.recording.png import palette_png
from shared.game.recording.replay import prefix_pictures, replay, verify
from shared.game.recording.segment import ACTORS, Segment, read_segment


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """What to render. `scale` enlarges the video by a whole number; `overlay` puts the caption under it."""

    frames: bool = True
    video: bool = True
    scale: int = 3
    overlay: bool = True


@dataclass(frozen=True, slots=True)
class RenderedSegment:
    """Files by name, and the manifest that lists them."""

    manifest: ExportManifest
    files: dict[str, bytes]


class _CancellableEmulator(Emulator):
    """Stops when its caller is cancelled: a thread cannot be cancelled, and a long episode replays for minutes."""

    def __init__(self, game: Game, cancelled: threading.Event) -> None:
        self._cancelled = cancelled
        super().__init__(game)

    def step(self, action: int, frames: int, render: bool = False) -> None:
        if self._cancelled.is_set():
            raise Transient("the replay was cancelled")
        super().step(action, frames, render)


def render(
    raw: bytes,
    game: Game,
    scores: SegmentScores | None,
    options: RenderOptions,
    cancelled: threading.Event | None = None,
) -> RenderedSegment:
    """Replay the archive and render its files; raise Transient soon after `cancelled` is set.

    Raises ContractError or DigestMismatch for a damaged archive, ReplayMismatch (with both hashes) for one whose replay
    ends in another state.
    """
    segment = read_segment(raw)
    actors = [] if segment.actors is None or not options.overlay else [ACTORS[actor] for actor in segment.actors]
    lines = caption(segment.manifest, scores, actors) if options.overlay else []
    frames: dict[str, bytes] = {}
    files = {STATES: segment.states.encode()}
    pictures = _pictures(segment, game, cancelled or threading.Event(), frames if options.frames else None, files)
    if options.video:
        skip, notes = segment.manifest.frame_skip, acting_notes(actors)
        files[VIDEO] = encode_mp4(pictures, frame_skip=skip, scale=options.scale, caption=lines, notes=notes)
    for _ in pictures:  # exhaust the replay: the last hash is compared at its end
        pass
    files |= frames
    manifest = ExportManifest(
        segment=segment.manifest,
        archive=sha256(raw),
        frames=len(frames),
        caption=lines,
        files={name: sha256(data) for name, data in files.items()},
    )
    return RenderedSegment(manifest, files)


def segment_pictures(raw: bytes, game: Game) -> Iterator[NDArray[np.uint8]]:
    """Yield the RGB picture (144, 160, 3) of every step; errors are those of `render`.

    The archive is verified by a replay of its own before this returns: so no picture of a wrong one is used.
    """
    return _pictures(_verified(raw, game), game, threading.Event(), None)


def episode_pictures(raw: bytes, game: Game) -> Iterator[NDArray[np.uint8]]:
    """As `segment_pictures`, from the start of the segment's episode on."""
    segment = _verified(raw, game)
    return chain(_prefix_pictures(segment, game), _pictures(segment, game, threading.Event(), None))


def _verified(raw: bytes, game: Game) -> Segment:
    segment, emulator = read_segment(raw), Emulator(game)
    try:
        verify(segment, emulator)
    finally:
        emulator.close()
    return segment


def _prefix_pictures(segment: Segment, game: Game) -> Iterator[NDArray[np.uint8]]:
    emulator = Emulator(game)
    try:
        yield from map(_rgb, prefix_pictures(segment, emulator))
    finally:
        emulator.close()


def _pictures(
    segment: Segment,
    game: Game,
    cancelled: threading.Event,
    frames: dict[str, bytes] | None,
    files: dict[str, bytes] | None = None,
) -> Iterator[NDArray[np.uint8]]:
    """Yield the RGB picture of every step, starting before the first action; also add each as PNG to `frames`.

    `files` receives the state at its start. A generator, because 5,000 unpacked pictures take half a gigabyte.
    """
    emulator = _CancellableEmulator(game, cancelled)
    try:
        for moment in replay(segment, emulator, wants_picture=lambda step: True):
            if moment.picture is None:
                continue
            if files is not None and moment.step == 0:
                files[SAVED_STATE] = emulator.save()
            if frames is not None:
                frames[frame_name(moment.step)] = palette_png(moment.picture)
            yield _rgb(moment.picture)
    finally:
        emulator.close()


def _rgb(picture: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Convert packed little-endian RGBA (144, 160) to RGB (144, 160, 3)."""
    return picture.view(np.uint8).reshape(*picture.shape, 4)[:, :, :3]
