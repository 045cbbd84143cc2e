"""Plays a trajectory of the archive again, from the true start."""

from collections.abc import Iterable

from services.trainer.exploration.rollout import ACTIONS_VERSION
from services.trainer.state_archive.archive import PathPart
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode


def replay(emulator: Emulator, start: bytes, parts: Iterable[PathPart], frame_skip: int) -> None:
    """Play all parts, each seeded as its rollout was: the emulator ends in the state of the entry."""
    state = start
    for part in parts:
        begin_episode(emulator, state, part.seed, ACTIONS_VERSION)
        for action in part.actions:
            emulator.step(action, frame_skip)
        state = emulator.save()
