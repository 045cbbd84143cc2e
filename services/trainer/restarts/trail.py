"""Follows one episode along the trails of a trajectory's legs: the coarse tiles on the way to each goal.

Goals lie a hundred steps apart, and between them a policy learns from the last one alone where to go. Points on the way
pay as checkpoints do (Aytar et al. 2018, arXiv:1805.11592).
"""

from collections.abc import Sequence
from typing import Final

from services.trainer.state_archive.goal import TrajectoryLeg

LOOK_AHEAD: Final = 4
"""Points that an episode may pass together: it cuts corners, and leaves out no loop that the goal may need."""


class Trail:
    """Where one episode is on the trail of its present leg."""

    def __init__(self, legs: Sequence[TrajectoryLeg], leg: int, step: int) -> None:
        """The episode begins on this leg, `step` steps after the trajectory's beginning."""
        self._legs, self._leg = legs, leg
        self._next = sum(point.step <= step for point in legs[leg].trail) if leg < len(legs) else 0

    def look(self, leg: int, place: tuple[int, int, int, int]) -> int:
        """How many points the episode has just passed, which is on this leg and at this place."""
        if leg != self._leg:
            self._leg, self._next = leg, 0
        if leg >= len(self._legs):
            return 0
        ahead = self._legs[leg].trail[self._next : self._next + LOOK_AHEAD]
        passed = next((number for number, point in enumerate(ahead, start=1) if point.place == place), 0)
        self._next += passed
        return passed
