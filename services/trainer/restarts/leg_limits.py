"""How long an episode of the backward curriculum may take: it goes on while it reaches the goals of mastered legs.

A leg that is not mastered would take the most steps and seldom succeed; it has episodes of its own, from near its end.
"""

from collections.abc import Sequence
from typing import Final

from services.trainer.domain.backward import longest_episode
from services.trainer.env.game_session import GameSession
from services.trainer.state_archive.cell import lasting
from services.trainer.state_archive.goal import TrajectoryLeg, achieves

AFTER_GOAL: Final = 20  # steps of an episode that does not go on: what ends with the goal is still seen


class LegLimits:
    """The limits of one episode. Without legs it has none but its start's."""

    def __init__(self, legs: Sequence[TrajectoryLeg], first: int | None, session: GameSession) -> None:
        """`first` is the leg on which the episode begins; None: it begins at the true start, before all of them."""
        self._legs, self._next, self._packed = legs, first or 0, b""
        if legs and first is None:
            session.allow(longest_episode(legs[0].end))

    def look(self, session: GameSession) -> int:
        """How many goals were reached in the last step; their episode is granted the steps of the next leg.

        With the same counters a look costs a comparison.
        """
        packed = session.counters.packed
        if packed is self._packed or self._next >= len(self._legs):
            return 0
        self._packed = packed
        own, before = lasting(session.counters.values), self._next
        while self._next < len(self._legs) and achieves(own, self._legs[self._next].goal.cell.counters):
            self._next += 1
        if self._next > before:
            session.allow(self._steps_from_here())
        return self._next - before

    def _steps_from_here(self) -> int:
        if self._next == len(self._legs):
            return longest_episode(0)
        leg = self._legs[self._next]
        return longest_episode(leg.end - leg.begin) if leg.mastered else AFTER_GOAL
