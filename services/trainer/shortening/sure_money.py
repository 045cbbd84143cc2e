"""Orders the legs of an explored path so that what they pay comes from chests and people, not from drops. Pure.

An exploration plays so long that enemies drop enough for any price. A path that counts on this asks for luck: with
another random seed an episode finds other drops.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final

from services.trainer.shortening.leg_player import Counters, PathLeg
from services.trainer.state_archive.goal import PathGoal, rises, rupees_needed
from shared.game.observation.counters import LASTING, UNKNOWN_COUNT

NOTHING: Final[Counters] = (0,) * len(LASTING)


def sure_money_first(legs: Sequence[PathLeg]) -> list[PathLeg]:
    """The legs of a path. Before one that pays more than was given so far come later legs that give the rest.

    Legs in another part of the world than those before, for example in a dungeon, do not come earlier: the payment may
    open it. If too little is given later, the order stays, and the path counts on drops. Where no leg moves, goals stay
    as they are; else they ask for what their new order has achieved, and for the money that is given.
    """
    ordered, owned, place = list(legs), 0, 0
    while place < len(ordered):
        missing = -(owned + ordered[place].money)
        moved = _givers(ordered, place, missing) if missing > 0 else []
        if moved:
            rest = [leg for leg in ordered[place:] if leg not in moved]
            ordered = [*ordered[:place], *moved, *rest]
        owned = max(0, owned + ordered[place].money)
        place += 1
    return list(legs) if ordered == list(legs) else _with_goals(legs, ordered)


def end_of_order(legs: Sequence[PathLeg], number: int) -> int:
    """How many legs, this one included, achieve together what a beginning of the explored path achieves."""
    for count in range(number + 1, len(legs)):
        if max(leg.end for leg in legs[:count]) < min(leg.end for leg in legs[count:]):
            return count
    return len(legs)


def _givers(legs: Sequence[PathLeg], place: int, missing: int) -> list[PathLeg]:
    """The legs after this place that give what is missing there together, with those between them; none if none do."""
    known = {leg.group for leg in legs[: place + 1]}
    moved: list[PathLeg] = []
    for leg in legs[place + 1 :]:
        if leg.group in known:
            moved.append(leg)
            missing -= leg.money
            if missing <= 0:
                return moved
    return []


def _with_goals(legs: Sequence[PathLeg], ordered: Sequence[PathLeg]) -> list[PathLeg]:
    """The ordered legs with the goals of their order. `legs` are in the order of the path."""
    before = [NOTHING, *(leg.goal.counters for leg in legs)]
    gains = {leg.end: rises(one, other) for leg, (one, other) in zip(legs, pairwise(before), strict=True)}
    achieved = [*accumulate((gains[leg.end] for leg in ordered), _sum)]
    needed = rupees_needed([*accumulate(leg.money for leg in ordered)], achieved)
    goals = map(PathGoal, achieved, needed)
    return [leg._replace(goal=goal) for leg, goal in zip(ordered, goals, strict=True)]


def _sum(one: Counters, other: Counters) -> Counters:
    return tuple(min(first + second, UNKNOWN_COUNT) for first, second in zip(one, other, strict=True))
