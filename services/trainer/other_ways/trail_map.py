"""Where a trajectory goes, step by step, and the ways between its rooms."""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple, Self

from services.trainer.other_ways.room_ways import RoomPlace, Stop, Ways, rooms_around, ways_of
from shared.game.decoding.state import RoomKey


class TrailMap(NamedTuple):
    """A trajectory on the map."""

    places: Mapping[int, RoomPlace]
    """Those where the hero has control, by step and in their order."""
    ways: Ways

    @classmethod
    def of(cls, places: Mapping[int, RoomPlace]) -> Self:
        """The map of a trajectory with these places."""
        return cls(places, ways_of(places.values()))

    def ahead(self, here: RoomKey, begin: int, end: int) -> Stop:
        """Where one who is in this room should go on: at a stop from `begin` to `end`, between which nothing is gained.

        In the room of the first one, that is the first. Else it is the last of those that the fewest rooms lie before.
        """
        first = self.at(begin)
        around = {here: [], **rooms_around(self.ways, here)}
        away = {
            step: len(around[place.room])
            for step, place in self.places.items()
            if begin <= step < end and place.room in around
        }
        if first.place.room == here or not away:
            return first
        return self.at(max(away, key=lambda step: (-away[step], step)))

    def at(self, step: int) -> Stop:
        """Where the hero last had control up to this step, or else where he first has it."""
        steps = [*self.places]
        until = [self.places[one] for one in steps[: max(1, bisect_right(steps, step))]]
        *_, entry = takewhile(lambda place: place.room == until[-1].room, reversed(until))
        return Stop(until[-1], entry)
