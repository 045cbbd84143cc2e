"""Cuts a trajectory into legs, at each lasting achievement and at places on a long way to one, with trails. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.goal import ArchiveGoal, TrailPoint, TrajectoryLeg, rises, rupees_needed

LEG_STEPS: Final = 100
"""The least steps of a leg that ends on the way. On the vale 1,497 steps lay between two achievements: with the second
as the only goal, a policy learnt the last 400 of them in two million steps."""


class TrajectoryMoment(NamedTuple):
    """A step of a trajectory at which the hero has control: his cell and his money."""

    step: int
    cell: ArchiveCell
    rupees: int
    enemy_health: int = 0
    """What the enemies in the room have left together."""


def legs_of(moments: Sequence[TrajectoryMoment]) -> list[TrajectoryLeg]:
    """The legs of a trajectory, up to the last goal in these moments.

    A leg ends where a lasting counter has risen. A longer way there is also cut, at the earliest after LEG_STEPS, where
    the hero enters another room or finds money that the rest of the path pays. Another place in the same room would be
    a goal that is reached without a move.
    """
    needed = rupees_needed([moment.rupees for moment in moments], [moment.cell.counters for moment in moments])
    goals = [ArchiveGoal(moment.cell, rupees) for moment, rupees in zip(moments, needed, strict=True)]
    legs: list[TrajectoryLeg] = []
    for (_, before), (moment, goal) in pairwise(zip(moments, goals, strict=True)):
        begin, last = (legs[-1].end, legs[-1].goal) if legs else (0, goals[0])
        achieved = goal.cell.counters != before.cell.counters
        placed = _place(goal) != _place(before) and goal.rupees >= before.rupees
        wanted = placed and moment.step - begin >= LEG_STEPS and _place(goal) != _place(last)
        if achieved or wanted:
            gains = rises(before.cell.counters, moment.cell.counters) if achieved else ()
            legs.append(TrajectoryLeg(begin, moment.step, goal, on_the_way=not achieved, gains=gains))
    return legs


def with_trails(legs: Sequence[TrajectoryLeg], moments: Sequence[TrajectoryMoment]) -> list[TrajectoryLeg]:
    """The legs with the coarse tiles that lie on their ways, and the hits at the enemies there."""
    trail = [point for before, after in pairwise(moments) for point in _points(before, after)]
    return [leg._replace(trail=tuple(point for point in trail if leg.begin < point.step <= leg.end)) for leg in legs]


def _points(before: TrajectoryMoment, after: TrajectoryMoment) -> Iterator[TrailPoint]:
    place = _tile(after.cell)
    if place != _tile(before.cell):
        yield TrailPoint(after.step, place)
    if place[:2] == _tile(before.cell)[:2] and after.enemy_health < before.enemy_health:
        yield TrailPoint(after.step, place, after.enemy_health)


def _tile(cell: ArchiveCell) -> tuple[int, int, int, int]:
    return cell.group, cell.room, cell.column, cell.row


def _place(goal: ArchiveGoal) -> tuple[int, int, int]:
    """What a place on the way is known by: group, room and money."""
    return goal.cell.group, goal.cell.room, goal.rupees
