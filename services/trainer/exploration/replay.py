"""Plays a trajectory of the archive again, from the true start."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from services.trainer.exploration.rollout import ACTIONS_VERSION
from services.trainer.state_archive.archive import PathPart
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode


def replay(emulator: Emulator, start: bytes, parts: Iterable[PathPart], frame_skip: int) -> None:
    """Play all parts, each seeded as its rollout was: the emulator ends in the state of the entry."""
    for _ in _steps(emulator, start, parts, frame_skip, drawn=False):
        pass


def pictures(
    emulator: Emulator, start: bytes, parts: Iterable[PathPart], frame_skip: int
) -> Iterator[NDArray[np.uint8]]:
    """The picture after each step of the path, uint8 (144, 160, 3) RGB."""
    for _ in _steps(emulator, start, parts, frame_skip, drawn=True):
        yield emulator.screen()


def _steps(
    emulator: Emulator, start: bytes, parts: Iterable[PathPart], frame_skip: int, *, drawn: bool
) -> Iterator[None]:
    state = start
    for part in parts:
        begin_episode(emulator, state, part.seed, ACTIONS_VERSION)
        for action in part.actions:
            emulator.step(action, frame_skip, drawn)
            yield
        state = emulator.save()
