"""A planner that knows the map and an executor that sees RAM alone get far in the worlds of Bramble."""

from tests.unit.executor.played import played
from tests.unit.executor.scripted_planner import ScriptedPlanner


def test_planned_macros_finish_the_garden() -> None:
    with played("garden", "normal") as game:
        planner = ScriptedPlanner(game, "garden")
        assert planner.play() == "the end", planner.macros[-3:]
        assert game.session.milestones == 4


def test_planned_macros_reach_ten_milestones_of_the_vale() -> None:
    with played("vale") as game:
        planner = ScriptedPlanner(game, "vale")
        assert planner.play() == "a fight", planner.macros[-3:]
        assert game.session.milestones >= 10
