"""Which legs of a trajectory an episode has passed. Pure.

What a leg achieves is known by its room and by how far each lasting counter rises there. Counts alone do not say what
was achieved: of two rooms, an episode may solve the second one first. A demonstration also takes what it finds, needed
or not. So what the leg after next achieves passes both; what was left out still counts when it is made up for. An
achievement whose room has a later one is never left out: a chest there may appear only once a fight is won.
"""

from collections.abc import Sequence
from typing import Final

from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.goal import TrajectoryLeg, achieves, rises

MAX_LEFT_OUT: Final = 1
"""Achievements that a pass may leave out. What comes much earlier, as a chest beside the way, passes nothing before its
turn: episodes would be led to where they cannot go yet."""
Room = tuple[int, int]


class PassedLegs:
    """The legs that one episode has passed, from the cells that it enters in turn."""

    def __init__(self, legs: Sequence[TrajectoryLeg], first: int) -> None:
        """The episode begins on the leg `first`."""
        self._legs, self.next_leg = legs, first
        self._open = [
            number for number, leg in enumerate(legs) if number >= first and any(leg.gains)
        ]  # not achieved yet
        last = {_room(legs[number]): number for number in self._open}
        self._needed = {number for number in self._open if number < last[_room(legs[number])]}
        self._passing: set[int] = set()  # achieved, and pass the legs before them
        self._room: Room | None = None
        self._before: tuple[int, ...] = ()  # counters before the steps in this room, with what its legs had of them
        self._controlled: tuple[int, ...] = ()  # counters when the hero last had control

    def enter(self, cell: ArchiveCell, rupees: int, *, control: bool) -> int:
        """The episode is in this cell now, with so much money. Return how many legs it passes or makes up for."""
        room = cell.group, cell.room
        if room != self._room:
            # What rises with the step into a room, or until the hero has control in it, is gained in it.
            self._room, self._before = room, self._controlled or cell.counters
        if control or not self._controlled:
            self._controlled = cell.counters
        begun, made_up = self.next_leg, self._achieve(room, cell.counters)
        while (passed := self._passed(cell, rupees)) > self.next_leg:
            self.next_leg = passed
        return self.next_leg - begun + made_up

    def _achieve(self, room: Room, counters: tuple[int, ...]) -> int:
        """Note what was achieved in this room, in the order of its legs; return how many of them were left out."""
        made_up, missing = 0, set[int]()
        for number in [one for one in self._open if _room(self._legs[one]) == room]:
            gains = self._legs[number].gains
            rising = {place for place, gain in enumerate(gains) if gain}
            if rising & missing or not achieves(rises(self._before, counters), gains):
                missing |= rising  # a later leg of this room that gains the same would be mistaken for this one
                continue
            self._before = tuple(own + gain for own, gain in zip(self._before, gains, strict=True))
            self._open.remove(number)
            left_out = [one for one in self._open if self.next_leg <= one < number]
            if len(left_out) <= MAX_LEFT_OUT and self._needed.isdisjoint(left_out):
                self._passing.add(number)
            made_up += number < self.next_leg
        return made_up

    def _passed(self, cell: ArchiveCell, rupees: int) -> int:
        """The leg to do next. What is achieved, with the money that the rest pays, passes the legs before it.

        Places, on the way or at the trajectory's end, are passed one by one.
        """
        ahead = range(self.next_leg, len(self._legs))
        following = next((number for number in ahead if any(self._legs[number].gains)), None)
        for number in reversed(ahead):
            passing = number in self._passing or (number == following and number not in self._open)
            if passing and rupees >= self._legs[number].goal.rupees:
                return number + 1
        if not ahead:
            return self.next_leg
        leg = self._legs[self.next_leg]
        there = _room(leg) == self._room and rupees >= leg.goal.rupees
        known = leg.on_the_way or achieves(cell.counters, leg.goal.cell.counters)
        return self.next_leg + (there and known and not any(leg.gains))


def _room(leg: TrajectoryLeg) -> Room:
    return leg.goal.cell.group, leg.goal.cell.room
