"""Follows one episode along the trails of a trajectory's legs: the coarse tiles and the hits on the way to each goal.

Goals lie a hundred steps apart, and between them a policy learns from the last one alone where to go. Points on the way
pay as checkpoints do (Aytar et al. 2018, arXiv:1805.11592). Without the hits a fight pays nothing until it is won, and
a policy learns to leave it.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final

from services.trainer.state_archive.goal import TrailPoint, TrajectoryLeg

LOOK_AHEAD: Final = 4
"""Points that an episode may pass together: it cuts corners, and leaves out no loop that the goal may need."""

Points = tuple[TrailPoint, ...]
Place = tuple[int, int, int, int]


class Trail:
    """Where one episode is on the trail of its present leg."""

    def __init__(self, legs: Sequence[TrajectoryLeg], leg: int, step: int) -> None:
        """The episode begins on this leg, `step` steps after the trajectory's beginning."""
        self._legs, self._leg, self._ahead = legs, leg, Points()
        self.step = step
        """The trajectory's step of the last point that was passed."""
        self._before = (-1, -1), 0  # the room of the last look, and what its enemies had left
        if leg < len(legs):
            self._ahead = tuple(point for point in legs[leg].trail if point.step > step)

    def turn_back(self, leg: int, room: tuple[int, int]) -> int:
        """The episode has died or lost the way on this leg, and is in this room: its trail leads on from there.

        Return how many steps the trajectory takes for that, from its last time in this room.
        """
        way = [point for one in self._legs[:leg] for point in one.trail if point.enemy_health is None]
        begin = max((point.step for point in [*way, *self._legs[leg].trail] if point.place[:2] == room), default=0)
        back = without_loops(point for point in way if point.step >= begin)
        self._leg, self._ahead = leg, back + tuple(point for point in self._legs[leg].trail if point.step >= begin)
        return self._legs[leg].end - begin

    def look(self, leg: int, place: Place, enemy_health: int = 0) -> int:
        """How many points the episode has just passed, which is on this leg and at this place.

        `enemy_health` is what the room's enemies have left. A hit passes the points up to where they have as little.
        """
        if leg != self._leg:
            self._leg, self._ahead = leg, self._legs[leg].trail if leg < len(self._legs) else Points()
        room = place[:2]
        passed = max(self._entered(place), self._hit(room, enemy_health))
        self._before = room, enemy_health
        if passed:
            self.step = self._ahead[passed - 1].step
        self._ahead = self._ahead[passed:]
        return passed

    def _entered(self, place: Place) -> int:
        near = enumerate(self._ahead[:LOOK_AHEAD], start=1)
        return next((number for number, one in near if one.place == place and one.enemy_health is None), 0)

    def _hit(self, room: tuple[int, int], enemy_health: int) -> int:
        if room != self._before[0] or enemy_health >= self._before[1]:
            return 0
        here = enumerate(takewhile(lambda point: point.place[:2] == room, self._ahead), start=1)
        return max(
            (number for number, one in here if one.enemy_health is not None and one.enemy_health >= enemy_health),
            default=0,
        )


def without_loops(points: Iterable[TrailPoint]) -> Points:
    """The points without those between two visits of the same place."""
    kept: dict[Place, TrailPoint] = {}
    for point in points:
        if point.place in kept:
            places = list(kept)
            for place in places[places.index(point.place) + 1 :]:
                del kept[place]
        kept[point.place] = point
    return tuple(kept.values())
