"""How episodes are spent: shares of steps in loops, stuck, in the menu. Read from the detectors, step by step."""

from typing import Any

import numpy as np

NAMES = ("loop_share", "stuck_share", "menu_share")


class BehaviourStats:
    """Counts per environment since its episode began. N environments."""

    def __init__(self, envs: int) -> None:
        self._counts = np.zeros((envs, len(NAMES)))
        self._steps = np.zeros(envs)

    def begin(self) -> None:
        """Every environment begins an episode."""
        self._counts[:] = 0
        self._steps[:] = 0

    def note(self, players: list[Any]) -> None:
        """One step was made everywhere. An episode's first observation counts as a step of nothing."""
        for env, player in enumerate(players):
            detectors = player.detectors
            self._steps[env] += 1
            if detectors.stuck:
                self._counts[env, 1] += 1
            if detectors.loop:
                self._counts[env, 0] += 1
            if player.state.menu:
                self._counts[env, 2] += 1

    def take(self, env: int) -> dict[str, float]:
        """The shares of the episode that ended in `env`; the next one begins."""
        shares = self._counts[env] / max(1.0, self._steps[env])
        self._counts[env] = 0
        self._steps[env] = 0
        return dict(zip(NAMES, shares.tolist(), strict=True))
