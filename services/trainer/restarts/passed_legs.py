"""Which legs of a trajectory an episode has passed. Pure.

What a leg achieves is known by its room and by how far each lasting counter rises there. Counts alone do not say what
was achieved: of two rooms, an episode may solve the second one first. What comes early counts in its turn: the legs
before it are still to be done, because what they achieve may be needed later. Only what gives money or health alone may
be left out.
"""

from collections.abc import Iterator, Sequence

from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.goal import NEEDLESS, TrajectoryLeg, achieves, rises

Room = tuple[int, int]


class PassedLegs:
    """The legs that one episode has passed, from the cells that it enters in turn."""

    def __init__(self, legs: Sequence[TrajectoryLeg], first: int) -> None:
        """The episode begins on the leg `first`."""
        self._legs, self.next_leg = legs, first
        self._open = [
            number for number, leg in enumerate(legs) if number >= first and any(leg.gains)
        ]  # not achieved yet
        self._room: Room | None = None
        self._before: tuple[int, ...] = ()  # counters before the steps in this room, with what its legs had of them
        self._controlled: tuple[int, ...] = ()  # counters when the hero last had control

    def enter(self, cell: ArchiveCell, rupees: int, *, control: bool) -> int:
        """The episode is in this cell now, with so much money. Return how many legs it passes."""
        room = cell.group, cell.room
        if room != self._room:
            # What rises with the step into a room, or until the hero has control in it, is gained in it.
            self._room, self._before = room, self._controlled or cell.counters
        if control or not self._controlled:
            self._controlled = cell.counters
        begun = self.next_leg
        self._achieve(room, cell.counters)
        while (passed := self._passed(cell, rupees)) > self.next_leg:
            self.next_leg = passed
        return self.next_leg - begun

    def _achieve(self, room: Room, counters: tuple[int, ...]) -> None:
        """Note what was achieved in this room, in the order of its legs."""
        missing = set[int]()
        for number in [one for one in self._open if _room(self._legs[one]) == room]:
            gains = self._legs[number].gains
            rising = {place for place, gain in enumerate(gains) if gain}
            if rising & missing or not achieves(rises(self._before, counters), gains):
                missing |= rising  # a later leg of this room that gains the same would be mistaken for this one
                continue
            self._before = tuple(own + gain for own, gain in zip(self._before, gains, strict=True))
            self._open.remove(number)

    def _passed(self, cell: ArchiveCell, rupees: int) -> int:
        """The leg to do next. What is achieved, with the money that the rest pays, passes the places on the way to it.

        Places, on the way or at the trajectory's end, are passed one by one.
        """
        for number in reversed([*self._achieved()]):
            if rupees >= self._legs[number].goal.rupees:
                return number + 1
        if self.next_leg == len(self._legs):
            return self.next_leg
        leg = self._legs[self.next_leg]
        there = _room(leg) == self._room and rupees >= leg.goal.rupees
        known = leg.on_the_way or achieves(cell.counters, leg.goal.cell.counters)
        return self.next_leg + (there and known and not any(leg.gains))

    def _achieved(self) -> Iterator[int]:
        """The legs ahead that are achieved, up to the first one that is still to be done."""
        for number in range(self.next_leg, len(self._legs)):
            gains = self._legs[number].gains
            if number in self._open:
                if not NEEDLESS.issuperset(place for place, gain in enumerate(gains) if gain):
                    return
            elif any(gains):
                yield number


def _room(leg: TrajectoryLeg) -> Room:
    return leg.goal.cell.group, leg.goal.cell.room
