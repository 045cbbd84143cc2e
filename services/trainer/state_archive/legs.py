"""Cuts a trajectory into legs: from one lasting achievement to the next, and long ways at places between. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.goal import ArchiveGoal, TrajectoryLeg, rupees_needed

LEG_STEPS: Final = 100
"""Steps of a leg on the way, at least. On the vale one achievement lay 1,497 steps behind the one before: with that
goal alone a policy learnt the last 400 of them in two million steps."""


class TrajectoryMoment(NamedTuple):
    """A step of a trajectory at which the hero has control: his cell and his money."""

    step: int
    cell: ArchiveCell
    rupees: int


def legs_of(moments: Sequence[TrajectoryMoment]) -> list[TrajectoryLeg]:
    """The legs of a trajectory, up to the last goal in these moments.

    A leg ends where lasting counters have risen. Before, it ends on entering a room, or on finding money that the rest
    of the path pays, once it has LEG_STEPS: places in one room would be reached without a move.
    """
    needed = rupees_needed([moment.rupees for moment in moments])
    goals = [ArchiveGoal(moment.cell, rupees) for moment, rupees in zip(moments, needed, strict=True)]
    legs: list[TrajectoryLeg] = []
    begin, last = 0, goals[0] if goals else None
    for (_, before), (moment, goal) in pairwise(zip(moments, goals, strict=True)):
        achieved = goal.cell.counters != before.cell.counters
        placed = _place(goal) != _place(before) and goal.rupees >= before.rupees
        wanted = placed and moment.step - begin >= LEG_STEPS and last is not None and _place(goal) != _place(last)
        if achieved or wanted:
            legs.append(TrajectoryLeg(begin, moment.step, goal, on_the_way=not achieved))
            begin, last = moment.step, goal
    return legs


def _place(goal: ArchiveGoal) -> tuple[int, int, int]:
    """What a place on the way is known by: group, room and money."""
    return goal.cell.group, goal.cell.room, goal.rupees
