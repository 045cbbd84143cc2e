"""Which legs of a trajectory an episode has passed. Pure.

A demonstration takes what it finds, needed or not: on the vale it leaves a dungeon for a chest that nothing later asks
for. An episode may leave such things out. What a later leg achieves passes all legs before it.
"""

from collections.abc import Sequence

from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.goal import TrajectoryLeg, achieves, rises


class PassedLegs:
    """The legs that one episode has passed, from the cells that it enters in turn."""

    def __init__(self, legs: Sequence[TrajectoryLeg], first: int) -> None:
        """The episode begins on the leg `first`."""
        self._legs, self.next_leg = legs, first
        self._room: tuple[int, int] | None = None
        self._last: tuple[int, ...] | None = None
        self._before: tuple[int, ...] = ()  # counters when this room was entered, or when a leg was last passed in it
        self._left_out: tuple[int, ...] | None = None  # what the episode lacks of the goals that it has passed

    def enter(self, cell: ArchiveCell, rupees: int) -> int:
        """The episode is in this cell now, with so much money. Return how many legs it passes by that."""
        begun = self.next_leg
        self._note(cell)
        while (passed := self._passed(cell, rupees)) > self.next_leg:
            self.next_leg, self._before = passed, cell.counters
        return self.next_leg - begun

    def _note(self, cell: ArchiveCell) -> None:
        if (cell.group, cell.room) != self._room:
            # What rises with the first step into a room, as a dungeon entered, is gained in it.
            self._room, self._before = (cell.group, cell.room), self._last or cell.counters
        self._last = cell.counters

    def _passed(self, cell: ArchiveCell, rupees: int) -> int:
        """The leg to do next. What is achieved, with the money that the rest pays, passes the places on the way to it.

        These are passed one by one.
        """
        if self._left_out is not None:
            counters = tuple(own + missing for own, missing in zip(cell.counters, self._left_out, strict=True))
            cell = cell._replace(counters=counters)
        passed = self.next_leg
        for number, leg in enumerate(self._legs[self.next_leg :], start=self.next_leg + 1):
            if leg.on_the_way:
                continue
            if not achieves(cell.counters, leg.goal.cell.counters):
                break
            if rupees >= leg.goal.rupees:
                passed = number
        if passed == self.next_leg < len(self._legs) and self._legs[passed].goal.reached_in(cell, rupees):
            passed += 1
        return passed if passed > self.next_leg else self._leaving_out(rupees)

    def _leaving_out(self, rupees: int) -> int:
        """The leg to do next if this room has just given what the next leg that achieves something here does."""
        if self._last is None or self._last == self._before:
            return self.next_leg
        for number, leg in enumerate(self._legs[self.next_leg :], start=self.next_leg + 1):
            goal = leg.goal
            if (goal.cell.group, goal.cell.room) == self._room and any(leg.gains):
                if rupees < goal.rupees or not achieves(rises(self._before, self._last), leg.gains):
                    break  # a leg behind it may gain the same, and would be mistaken for it
                self._left_out = rises(self._last, goal.cell.counters)
                return number
        return self.next_leg
