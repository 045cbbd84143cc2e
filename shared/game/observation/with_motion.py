"""The observation obs/v5: obs/v4, then how the nearest enemies and the nearest flying danger stand and move.

A fight is decided within a few pixels: a sword reaches two pixels farther than a touch hurts. On the scale of a room
(obs/v1) two pixels are 0.025, and nothing there says which way an enemy goes.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.game.decoding.objects import GameObject
from shared.game.decoding.state import GameState, RoomKey
from shared.game.observation import with_progress
from shared.game.observation.trace import EpisodeTrace

VERSION: Final = "obs/v5"
ENEMIES: Final = 3
REACH: Final = 32.0  # pixels; the scale of what is close
MOVE: Final = 8.0  # pixels; farther than anything moves in a step of four frames
HEALTH: Final = 8.0  # of the strongest enemy
JUMP: Final = 24  # pixels; what is farther from where it was is another object
NEAREST: Final = (*(f"enemy_{rank}" for rank in range(1, ENEMIES + 1)), "danger")
PARTS: Final = ("close_x", "close_y", "moved_x", "moved_y", "health")
"""Pixels to the right and down by 32, at most 1; pixels moved to the right and down in the last step by 8; health by 8,
of a danger 0. All are 0 without the object."""
NAMES: Final = tuple(f"{one}_{part}" for one in NEAREST for part in PARTS)
SIZE: Final = with_progress.SIZE + len(NAMES)

Floats = NDArray[np.float32]
Things = Sequence[GameObject]


class MotionObservation:
    """The observations of one environment. It remembers where things were a step before."""

    def __init__(self) -> None:
        self._seen: Floats = np.zeros(SIZE, np.float32)
        self._state: GameState | None = None
        self._trace: EpisodeTrace | None = None
        self._before: tuple[RoomKey, Things, Things] | None = None

    def of(self, seen: Floats, state: GameState, trace: EpisodeTrace) -> Floats:
        """Float32 (614,) of obs/v4 (594,) and the present state. The next call overwrites it."""
        if state is not self._state or trace is not self._trace:
            self._look(state, trace)
        self._seen[: with_progress.SIZE] = seen
        return self._seen

    def _look(self, state: GameState, trace: EpisodeTrace) -> None:
        before = self._before if trace is self._trace else None  # another episode stood elsewhere
        enemies, dangers = ((), ()) if before is None or before[0] != state.key else before[1:]
        rows = [_row(one, state, enemies) for one in _nearest(state.enemies, state, ENEMIES)]
        rows += [[0.0] * len(PARTS)] * (ENEMIES - len(rows))
        rows += [_row(one, state, dangers) for one in _nearest(state.dangers, state, 1)] or [[0.0] * len(PARTS)]
        self._seen[with_progress.SIZE :] = np.concatenate(rows)
        self._state, self._trace, self._before = state, trace, (state.key, state.enemies, state.dangers)


def _nearest(things: Things, state: GameState, count: int) -> Things:
    return sorted(things, key=lambda one: (one.x - state.x) ** 2 + (one.y - state.y) ** 2)[:count]


def _row(one: GameObject, state: GameState, before: Things) -> list[float]:
    """The numbers of an object; it was where the nearest one of its kind was a step before."""
    close = (one.x - state.x) / REACH, (one.y - state.y) / REACH
    was = min(
        (thing for thing in before if thing.id == one.id),
        key=lambda thing: abs(thing.x - one.x) + abs(thing.y - one.y),
        default=one,
    )
    moved = (one.x - was.x, one.y - was.y) if abs(one.x - was.x) + abs(one.y - was.y) <= JUMP else (0, 0)
    return [*(max(-1.0, min(1.0, part)) for part in (*close, moved[0] / MOVE, moved[1] / MOVE)), one.health / HEALTH]
