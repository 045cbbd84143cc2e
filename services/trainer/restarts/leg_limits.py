"""How long an episode of the backward curriculum may take: it goes on while it reaches the goals of mastered legs.

A leg that is not mastered would take the most steps and seldom succeed; it has episodes of its own, from near its end.
"""

from collections.abc import Sequence
from typing import Final

from services.trainer.domain.backward import longest_episode
from services.trainer.env.game_session import GameSession
from services.trainer.state_archive.cell import ArchiveCell, cell_of
from services.trainer.state_archive.goal import TrajectoryLeg, achieves, rupees_of
from shared.game.decoding.state import RoomKey

AFTER_GOAL: Final = 20  # steps of an episode that does not go on: what ends with the goal is still seen


class LegLimits:
    """The limits of one episode. Without legs it has none but its start's."""

    def __init__(self, legs: Sequence[TrajectoryLeg], first: int | None, session: GameSession) -> None:
        """`first` is the leg on which the episode begins; None: it begins at the true start, before all of them."""
        self._legs, self._next = legs, first or 0
        self._seen: tuple[RoomKey, int, bytes] | None = None
        if legs and first is None:
            session.allow(longest_episode(legs[0].end))

    @property
    def next_leg(self) -> int:
        """The number of the leg to do next: all before it are passed."""
        return self._next

    def look(self, session: GameSession) -> int:
        """How many goals were reached in the last step; their episode is granted the steps of the next leg.

        In the same room, with the same money and counters, a look costs a comparison.
        """
        if self._next >= len(self._legs):
            return 0
        state, rupees = session.state, rupees_of(session.state)
        seen = state.key, rupees, session.counters.packed
        if seen == self._seen:
            return 0
        self._seen, before = seen, self._next
        cell = cell_of(state, session.counters.values)
        while (passed := self._passed(cell, rupees)) > self._next:
            self._next = passed
        if self._next > before:
            session.allow(self._steps_from_here())
        return self._next - before

    def _passed(self, cell: ArchiveCell, rupees: int) -> int:
        """The leg to do next. What is achieved, with the money that the rest pays, passes the places on the way to it.

        These are passed one by one.
        """
        passed = self._next
        for number, leg in enumerate(self._legs[self._next :], start=self._next + 1):
            if leg.on_the_way:
                continue
            if not achieves(cell.counters, leg.goal.cell.counters):
                break
            if rupees >= leg.goal.rupees:
                passed = number
        if passed == self._next < len(self._legs) and self._legs[passed].goal.reached_in(cell, rupees):
            passed += 1
        return passed

    def _steps_from_here(self) -> int:
        if self._next == len(self._legs):
            return longest_episode(0)
        leg = self._legs[self._next]
        return longest_episode(leg.end - leg.begin) if leg.mastered else AFTER_GOAL
