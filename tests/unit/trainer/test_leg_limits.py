"""What an episode on a curriculum's trajectory may take, and what each look of its limits says."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from services.trainer.domain.backward import longest_episode
from services.trainer.env.game_session import GameSession
from services.trainer.other_ways.lost_episodes import LostMoment
from services.trainer.restarts import leg_limits
from services.trainer.restarts.leg_limits import LegLimits, LegProgress
from services.trainer.restarts.passed_legs import PassedLegs
from services.trainer.restarts.trail import Trail
from services.trainer.state_archive.cell import ArchiveCell, cell_of
from services.trainer.state_archive.goal import ArchiveGoal, TrailPoint, TrajectoryLeg
from shared.game.emulator.start import true_start
from shared.game.observation.counters import LASTING
from tests.unit.trainer.archived_play import CONFIG

DEATH_TRIGGER = 0xCC34


@pytest.fixture
def session() -> Iterator[GameSession]:
    """An episode that has just begun, and goes on after a death."""
    made = GameSession(CONFIG.environment(terminal_on_death=False))
    made.begin(true_start(made.game), 1)
    yield made
    made.close()


def here(session: GameSession) -> ArchiveCell:
    """The cell in which the hero stands."""
    return cell_of(session.state, session.counters.values)


def goal_elsewhere(session: GameSession) -> ArchiveGoal:
    """A goal that this episode never reaches."""
    return ArchiveGoal(here(session)._replace(room=here(session).room + 1))


def test_an_episode_from_the_true_start_has_the_time_of_its_first_leg(session: GameSession) -> None:
    goal = goal_elsewhere(session)
    LegLimits([TrajectoryLeg(0, 30, goal), TrajectoryLeg(30, 500, goal)], None, session)
    assert session.steps_left == longest_episode(30)


def test_a_death_leads_the_episode_back_once(session: GameSession) -> None:
    limits = LegLimits([TrajectoryLeg(0, 300, goal_elsewhere(session))], None, session)
    limits.look(session)
    session.emulator.poke(DEATH_TRIGGER, 0xFF)
    lost = []
    for step in range(150):
        session.step(1 + step % 4)
        limits.look(session)
        lost += [step] if limits.lost else []
    assert session.detectors.deaths == 1
    assert len(lost) == 1


@pytest.mark.parametrize("changes", ["enemy_health_of", "rupees_of"])
def test_a_look_on_the_same_tile_sees_what_has_changed(
    session: GameSession, changes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hit at an enemy, or the money that a goal needs, while the hero stands still."""
    cell = here(session)
    place = (cell.group, cell.room, cell.column, cell.row)
    trail = (TrailPoint(25, place, enemy_health=3),)
    fight = TrajectoryLeg(0, 30, goal_elsewhere(session), trail=trail)
    shop = TrajectoryLeg(0, 30, ArchiveGoal(cell, rupees=7), on_the_way=True)
    number = 5
    monkeypatch.setattr(leg_limits, changes, lambda state: number)
    limits = LegLimits([fight if changes == "enemy_health_of" else shop], None, session)
    assert limits.look(session) == LegProgress()
    number = 3 if changes == "enemy_health_of" else 7
    wanted = LegProgress(points=1) if changes == "enemy_health_of" else LegProgress(goals=1)
    assert limits.look(session) == wanted
    assert limits.look(session) == LegProgress(), "it is passed once"
    assert limits.passed == wanted


def test_a_look_on_the_same_tile_sees_what_was_achieved(session: GameSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chest is opened where the hero stands."""
    cell, values = here(session), session.counters.values
    chest = tuple(int(name == "chests") for name in LASTING)
    opened = cell._replace(counters=chest)
    limits = LegLimits([TrajectoryLeg(0, 30, ArchiveGoal(opened), gains=chest)], 0, session)
    monkeypatch.setattr(leg_limits, "cell_of", lambda state, counters: cell if counters is values else opened)
    assert limits.look(session) == LegProgress()
    changed: Any = SimpleNamespace(packed=b"later", values=None)
    monkeypatch.setattr(session, "counters", changed)
    assert not limits.passed_first
    assert limits.look(session) == LegProgress(goals=1)
    assert limits.passed_first, "the episode began on this leg"


def test_a_lost_episode_is_to_come_back_before_what_it_still_needs(session: GameSession) -> None:
    """What the next achievement needs may be money alone."""
    goal, gains = goal_elsewhere(session), (1, *[0] * (len(LASTING) - 1))
    place = TrajectoryLeg(0, 30, goal, on_the_way=True)
    money = TrajectoryLeg(30, 40, goal._replace(rupees=5), on_the_way=True)
    item = TrajectoryLeg(40, 50, goal, gains=gains)
    for legs, until in (((place, money, item), 40), ((place, item, money), 50), ((place,), 30)):
        session.begin(true_start(session.game), 1)
        limits = LegLimits(legs, None, session)
        session.allow(1)
        limits.look(session)
        assert limits.lost == LostMoment(0, 0, until)


def test_what_an_episode_passed_adds_up(session: GameSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary of an episode has the sum of what was paid for it."""
    cell = here(session)
    place = (cell.group, cell.room, cell.column, cell.row)
    trail = tuple(TrailPoint(20 + hits, place, enemy_health=4 - hits) for hits in range(3))
    limits = LegLimits([TrajectoryLeg(0, 30, goal_elsewhere(session), trail=trail)], None, session)
    for number, points in ((5, 0), (4, 1), (2, 2)):
        monkeypatch.setattr(leg_limits, "enemy_health_of", lambda state, left=number: left)
        assert limits.look(session).points == points
    assert limits.passed == LegProgress(points=3)


def test_a_trail_is_at_the_last_point_of_those_passed_together() -> None:
    goal = ArchiveGoal(ArchiveCell(0, 9, 0, 0, ()))
    points = tuple(TrailPoint(10 * number, (0, 1, number, 0)) for number in range(1, 5))
    trail = Trail([TrajectoryLeg(0, 95, goal, trail=points)], 0, 0)
    assert trail.look(0, (0, 1, 3, 0)) == 3
    assert trail.step == 30


def in_room(leg: int, gain: int) -> TrajectoryLeg:
    """A leg in room 1, in which one counter rises by this."""
    return TrajectoryLeg(10 * leg, 10 * leg + 10, ArchiveGoal(ArchiveCell(0, 1, 0, 0, (9,))), gains=(gain,))


@pytest.mark.parametrize(
    ("gains", "first", "passed"),
    [((1, 1), 0, [0, 1, 1]), ((1, 1), 1, [0, 1, 0]), ((2, 1), 0, [0, 0, 1])],
    ids=["one after the other", "begun on the second", "the first gains two"],
)
def test_a_gain_belongs_to_the_first_open_leg_of_its_room(
    gains: tuple[int, int], first: int, passed: list[int]
) -> None:
    episode = PassedLegs([in_room(number, gain) for number, gain in enumerate(gains)], first)
    entered = [episode.enter(ArchiveCell(0, 1, 0, 0, (count,)), 0, control=True) for count in range(3)]
    assert entered == passed
