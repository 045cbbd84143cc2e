"""A path pays with money that chests and people give: what enemies drop differs from episode to episode."""

import pytest

from services.trainer.shortening.leg_player import PathLeg
from services.trainer.shortening.sure_money import end_of_order, sure_money_first
from services.trainer.state_archive.archive import PathPart
from services.trainer.state_archive.goal import PathGoal
from shared.game.observation.counters import LASTING, UNKNOWN_COUNT

LAND, DUNGEON = 0, 4


def path_of(*ends: tuple[str, int, int]) -> list[PathLeg]:
    """Legs of ten actions. At the end of each a counter rises, in a group of rooms, and money comes or goes."""
    counters = dict.fromkeys(LASTING, 0) | {"levers": UNKNOWN_COUNT}
    legs = []
    for number, (name, group, money) in enumerate(ends, start=1):
        counters[name] += 1
        goal = PathGoal(tuple(counters.values()), 99)  # what it asked for in the explored order
        legs.append(PathLeg(goal, PathPart(1, bytes([number] * 10)), 10 * number, group, money))
    return legs


def named(legs: list[PathLeg]) -> list[int]:
    """Their numbers on the explored path."""
    return [leg.part.actions[0] for leg in legs]


GATE_FIRST = path_of(
    ("sword_levels", LAND, 0),
    ("solved", LAND, -20),  # a gate, paid with what enemies dropped
    ("dungeons", DUNGEON, 0),
    ("trades", LAND, 0),
    ("chests", LAND, 20),
    ("essences", DUNGEON, 0),
)


def test_the_chest_that_pays_for_the_gate_comes_before_it() -> None:
    ordered = sure_money_first(GATE_FIRST)
    assert named(ordered) == [1, 4, 5, 2, 3, 6], "what lies behind the gate stays behind it"
    assert [leg.goal.rupees for leg in ordered] == [0, 0, 20, 0, 0, 0]


def test_each_goal_asks_for_what_the_new_order_has_achieved() -> None:
    ordered = sure_money_first(GATE_FIRST)
    risen = [
        {name for name, count in zip(LASTING, leg.goal.counters, strict=True) if count and name != "levers"}
        for leg in ordered
    ]
    assert risen[2] == {"sword_levels", "trades", "chests"}
    assert ordered[-1].goal.counters == GATE_FIRST[-1].goal.counters
    assert {leg.goal.counters[LASTING.index("levers")] for leg in ordered} == {UNKNOWN_COUNT}, "the game cannot say"


@pytest.mark.parametrize(
    "legs",
    [
        path_of(("chests", LAND, 20), ("solved", LAND, -20), ("chests", LAND, 5)),
        path_of(("solved", LAND, -20), ("chests", LAND, 5)),
        path_of(("solved", LAND, -20), ("chests", DUNGEON, 20)),
        path_of(("solved", LAND, 0)),
        [],
    ],
    ids=["enough before", "too little after", "behind the gate", "nothing is paid", "no path"],
)
def test_a_path_keeps_its_order_if_none_is_better(legs: list[PathLeg]) -> None:
    assert sure_money_first(legs) == legs


def test_a_later_payment_counts_what_the_first_one_took() -> None:
    legs = path_of(("chests", LAND, 20), ("items", LAND, -15), ("solved", LAND, -20), ("story", LAND, 15))
    ordered = sure_money_first(legs)
    assert named(ordered) == [1, 2, 4, 3]
    assert [leg.goal.rupees for leg in ordered] == [20, 5, 20, 0]


def test_what_drops_have_paid_is_no_debt() -> None:
    legs = path_of(("solved", LAND, -20), ("items", LAND, -5), ("chests", LAND, 5))
    assert named(sure_money_first(legs)) == [1, 3, 2], "the chest pays for the item; nothing gives what the gate took"


def test_legs_that_changed_places_end_together_on_the_explored_path() -> None:
    ordered = sure_money_first(GATE_FIRST)
    assert [end_of_order(ordered, number) for number in range(len(ordered))] == [1, 5, 5, 5, 5, 6]
    assert [end_of_order(GATE_FIRST, number) for number in range(3)] == [1, 2, 3]
