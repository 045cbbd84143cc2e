"""Measures how episodes are spent: shares of steps in loops, stuck, in a menu. Reads the detectors on every step."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.game_session import GameSession

NAMES = ("loop_share", "stuck_share", "menu_share")


class BehaviourStats:
    """Counts per environment since its episode began, for N environments."""

    def __init__(self, envs: int) -> None:
        self._counts = np.zeros((envs, len(NAMES)))
        self._steps = np.zeros(envs)

    def begin(self) -> None:
        """Begin an episode in every environment."""
        self._counts[:] = 0
        self._steps[:] = 0

    def update(self, sessions: Sequence[GameSession], held: NDArray[np.bool_]) -> None:
        """Count one step of every environment but those held. An episode's first observation is a neutral step."""
        for env, session in enumerate(sessions):
            if held[env]:
                continue
            detectors = session.detectors
            self._steps[env] += 1
            if detectors.stuck:
                self._counts[env, 1] += 1
            if detectors.loop:
                self._counts[env, 0] += 1
            if session.state.menu:
                self._counts[env, 2] += 1

    def pop(self, env: int) -> dict[str, float]:
        """Return the shares of the episode that ended in `env`, and begin the next one."""
        shares = self._counts[env] / max(1.0, self._steps[env])
        self._counts[env] = 0
        self._steps[env] = 0
        return dict(zip(NAMES, shares.tolist(), strict=True))
