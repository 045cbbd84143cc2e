"""What an exploration found is shortened: detours come out, but the money that the rest of the path pays stays in."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bramble.registration import bramble_game
from bramble.solver.walkthrough import solve
from services.trainer.exploration.exploration import ExplorationPlan, Known
from services.trainer.exploration.rollout import PlayedRollout, RolloutPlan, RolloutTask, compress_state
from services.trainer.restarts.explored_path import ExploredPath
from services.trainer.shortening.leg_player import (
    ASTRAY,
    Arrival,
    LegPlayer,
    LegStart,
    Moment,
    PathLeg,
    goals_reached,
)
from services.trainer.shortening.leg_search import MAX_STEPS
from services.trainer.shortening.legs import PathLegs, without_needless_chests
from services.trainer.shortening.needless import shortened
from services.trainer.state_archive.archive import PathPart
from services.trainer.state_archive.goal import CHESTS, PathGoal, rises, rupees_needed, rupees_of
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.state import GameState
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode, true_start
from shared.game.games.registry import GameRequest
from shared.game.observation.counters import LASTING, UNKNOWN_COUNT
from shared.game.ram.offsets import LINK_DEATH_TRIGGER
from shared.game.recording.segment import unpack_state

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")
SEED = 1
RIGHT, LEFT = 4, 3
WORK_RAM = 0xC000
EXPLORED = Path(__file__).parents[3] / "docs/results/explored"
START = LegStart(compress_state(true_start(bramble_game("garden")).state))


@pytest.fixture(scope="module")
def player() -> Iterator[LegPlayer]:
    player = LegPlayer(bramble_game("garden"), RolloutPlan())
    yield player
    player.close()


@pytest.fixture(scope="module")
def walk() -> bytes:
    """The walk-through of the garden: two steps in, a detour there and back."""
    actions = bytes(solve("garden").actions)
    return actions[:8] + bytes([RIGHT] * 8 + [LEFT] * 8) + actions[8:]


def test_a_detour_comes_out_and_the_goal_is_reached_all_the_same(player: LegPlayer, walk: bytes) -> None:
    (goal, leg, *_), *_ = player.legs(START, PathPart(SEED, walk))
    shorter = shortened(player, START, leg, goal)
    assert shorter is not None
    assert len(shorter.actions) <= len(leg.actions) - 16
    arrival = player.reach(START, PathPart(SEED, shorter.actions), goal)
    assert arrival == shorter, "the way leads to the goal as one episode from its beginning"
    assert player.end(START, PathPart(SEED, shorter.actions)).at(goal)


def test_a_way_that_does_not_lead_to_the_goal_is_refused(player: LegPlayer, walk: bytes) -> None:
    (goal, *_), *_ = player.legs(START, PathPart(SEED, walk))
    assert shortened(player, START, PathPart(SEED, walk[:40]), goal) is None
    assert not START.at(goal), "an episode that begins has reached nothing"


def test_a_leg_ends_where_the_hero_has_control_again(player: LegPlayer, walk: bytes) -> None:
    """What was found is shown for some steps: the next leg cannot begin there."""
    (goal, leg, *_), *_ = player.legs(START, PathPart(SEED, walk))
    arrival = player.reach(START, leg, goal)
    assert arrival is not None
    assert arrival.actions == leg.actions


def test_the_next_leg_remembers_what_was_achieved(player: LegPlayer, walk: bytes) -> None:
    (goal, leg, *_), *_ = player.legs(START, PathPart(SEED, walk))
    here = player.end(START, leg)
    (moment,) = player.play(here, PathPart(SEED, b"")).moments
    assert moment.counters == here.counters == goal.counters
    assert sum(here.counters) > sum(player.play(START, PathPart(SEED, b"")).moments[0].counters)


def test_a_hero_who_has_left_a_known_way_for_long_is_given_up(player: LegPlayer, walk: bytes) -> None:
    part = PathPart(SEED, walk[:100])
    way = player.play(START, part).moments
    away = [moment._replace(room=moment.room + 1) for moment in way]
    assert len(player.play(START, part, along=away).actions) == ASTRAY + 1
    crossing = [way[step] if step % ASTRAY == 0 else away[step] for step in range(len(way))]
    assert len(player.play(START, part, along=crossing).actions) == 100, "he is on the way in between"
    aside = [moment._replace(x=moment.x + 1, y=moment.y + 9) for moment in way]
    assert len(player.play(START, part, along=aside).actions) == 100, "in its rooms, anywhere"


class Presses:
    """A player of a game whose goal is reached with the third press. The presses from `thorns` on cost a heart each."""

    def __init__(self, thorns: int = 99) -> None:
        self._thorns = thorns

    def reach(
        self, start: LegStart, part: PathPart, goal: PathGoal, along: Sequence[Moment] | None = None
    ) -> Arrival | None:
        made = start.state + part.actions
        steps, pressed = len(start.state), [step for step, action in enumerate(made) if action]
        if len(pressed) < 3:
            return None
        end = pressed[2] + 1
        hearts = 3 - sum(step - step // 8 * 8 >= self._thorns for step in pressed[:3])
        moments = [Moment(0, 0, step % 8, 0, 0, ()) for step in range(steps, end + 1)]
        return Arrival(made[steps:end], hearts, True, moments)

    def end(self, start: LegStart, part: PathPart) -> LegStart:
        return LegStart(start.state + part.actions)


def shortened_presses(actions: bytes, thorns: int = 99) -> bytes:
    player: Any = Presses(thorns)
    best = shortened(player, LegStart(b""), PathPart(SEED, actions), PathGoal(()))
    assert best is not None
    return best.actions


def test_only_the_actions_that_the_goal_needs_stay_in_a_long_way() -> None:
    needed = shortened_presses(bytes(70) + b"\1" + bytes(70) + b"\1" + bytes(70) + b"\1")
    assert needed.count(1) == 3
    assert len(needed) < 3 + 3 * 4, "fewer waits are left at each press than the smallest part that is tried"


def test_a_shorter_way_that_costs_more_hearts_than_steps_is_not_taken() -> None:
    """Two hearts are worth 600 steps here."""
    actions = bytes(16) + b"\1" + bytes(7) + b"\1" + bytes(7) + b"\1"
    assert len(shortened_presses(actions, thorns=1)) == len(actions) - 16, "each press stays where it costs none"
    assert len(shortened_presses(actions)) < len(actions) - 16


def test_a_path_that_has_spent_its_money_had_reached_the_goals_before() -> None:
    """A stopped exploration goes on behind what its path has reached."""
    goals = [PathGoal((1,), 5), PathGoal((2,), 0), PathGoal((3,), 4)]
    owned = [(0, 0), (1, 5), (2, 0), (3, 1)]
    moments = [Moment(0, 1, 8, 8, rupees, (counter,)) for counter, rupees in owned]
    assert goals_reached(moments, goals) == 2, "the third needs money that is not there yet"
    assert goals_reached(moments[:2], goals) == 1
    assert goals_reached(moments[2:], goals) == 0, "one after another"
    assert goals_reached([], goals) == 0


def test_a_way_through_death_is_refused(player: LegPlayer, walk: bytes) -> None:
    """The game brings the dead hero back to where he began, with full hearts."""
    (goal, leg, *_), *_ = player.legs(START, PathPart(SEED, walk))
    emulator = Emulator(bramble_game("garden"))
    begin_episode(emulator, unpack_state(START.state), SEED)
    emulator.poke(WORK_RAM + LINK_DEATH_TRIGGER, 0xFF)
    dying = LegStart(compress_state(emulator.save()))
    waits = bytes(150)
    assert decoded(emulator, waits).control, "the game goes on"
    emulator.close()
    assert player.reach(START, PathPart(SEED, waits + leg.actions), goal) is not None
    assert player.reach(dying, PathPart(SEED, waits + leg.actions), goal) is None


def decoded(emulator: Emulator, actions: bytes) -> GameState:
    for action in actions:
        emulator.step(action, 4)
    return Decoder(emulator.game.capabilities).begin(emulator.image())


def test_a_path_needs_the_money_that_its_achievements_cost() -> None:
    at_the_end = [(0,), (0,), (0,), (1,)]
    assert rupees_needed([0, 5, 5, 0], at_the_end) == [0, 5, 5, 0], "found after the first moment, paid for the last"
    assert rupees_needed([3, 3, 8, 1], at_the_end) == [2, 2, 7, 0], "what is found on the way need not be brought"
    assert rupees_needed([0, 9, 9], at_the_end[:3]) == [0, 0, 0], "what is never paid is not needed"
    assert rupees_needed([9, 4, 4, 0], at_the_end) == [4, 4, 4, 0], "the first payment achieved nothing"
    assert rupees_needed([], []) == []


def test_a_goal_is_not_reached_without_the_money_for_the_rest() -> None:
    emulator = Emulator(bramble_game("garden"))
    state = Decoder(bramble_game("garden").capabilities).begin(emulator.take()[0])
    emulator.close()

    def owning(rupees: int | None) -> GameState:
        return state._replace(inventory=replace(state.inventory, rupees=rupees))

    goal = PathGoal((1, 0), rupees=7)
    assert goal.reached((1, 0), rupees_of(owning(7)))
    assert not goal.reached((1, 0), rupees_of(owning(6)))
    assert not goal.reached((0, 2), rupees_of(owning(7)))
    assert PathGoal((1, 0)).reached((1, 0), rupees_of(owning(None))), "in a game that does not say"


class FindsNothing:
    """Plays rollouts that enter no cell."""

    def play(self, tasks: Sequence[RolloutTask], news: Known) -> list[PlayedRollout]:
        return [PlayedRollout(bytes(MAX_STEPS), (), (), died=False, arrived=False) for _ in tasks]

    def forget(self) -> None: ...


def test_the_explored_path_is_kept_where_no_way_leads_on(
    player: LegPlayer, walk: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ExplorationPlan("garden", SEED)
    legs = PathLegs(plan, START, PathPart(SEED, walk), budget=0)
    monkeypatch.setattr("services.trainer.shortening.legs.shortened", lambda *_: None)
    path, *_ = legs.shorten(FindsNothing())
    (_, explored, *_), *_ = player.legs(START, PathPart(SEED, walk))
    assert path == explored, "with its detour"
    assert legs.leads(path)
    legs.close()


class FindsNothingFor(FindsNothing):
    """A search of a few steps in each round, which is stopped after some rounds."""

    def __init__(self, rounds: int) -> None:
        self.left = rounds

    def play(self, tasks: Sequence[RolloutTask], news: Known) -> list[PlayedRollout]:
        self.left -= 1
        return [PlayedRollout(bytes(10), (), (), died=False, arrived=False) for _ in tasks]


def test_a_stopped_search_of_a_leg_decides_nothing(walk: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    legs = PathLegs(ExplorationPlan("garden", SEED), START, PathPart(SEED, walk), budget=0)
    monkeypatch.setattr("services.trainer.shortening.legs.shortened", lambda *_: None)
    runner = FindsNothingFor(rounds=3)
    assert list(legs.shorten(runner, None, lambda: runner.left <= 0)) == []
    assert runner.left == 0, "it ends after a round"
    legs.close()


def test_the_explored_order_stays_where_another_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def exchanged(legs: Sequence[PathLeg]) -> list[PathLeg]:
        """The first two change places, as if the second gave the money for the first."""
        first, second, *rest = legs
        return [second._replace(goal=PathGoal(rises(first.goal.counters, second.goal.counters))), first, *rest]

    monkeypatch.setattr("services.trainer.shortening.legs.sure_money_first", exchanged)
    monkeypatch.setattr("services.trainer.shortening.legs.shortened", lambda *_: None)
    file = next(EXPLORED.glob("vale-310-*.json"))
    found = ExploredPath.from_bytes(file.read_bytes()).path
    explored = PathPart(found.seed, found.actions[:400])
    plan = ExplorationPlan("vale", 310, request=GameRequest("vale", seed=310))
    start = LegStart(compress_state(true_start(plan.open_game()).state))
    legs = PathLegs(plan, start, explored, budget=0)
    first, second, third, *_ = legs.shorten(FindsNothing())
    assert first == second, "no way leads to the second alone: both are kept"
    assert explored.actions.startswith(third.actions)
    assert len(third.actions) > len(second.actions)
    again = legs.shorten(FindsNothing(), third)
    assert [next(again) for _ in range(3)] == [third] * 3, "a stopped search goes on from there"
    legs.close()


def ends_with(*moments: tuple[int, int, int]) -> list[PathLeg]:
    """Legs of ten actions. After each the hero has so many chests and doors, and the rest of the path pays so much."""
    legs = []
    for number, (chests, doors, rupees) in enumerate(moments):
        counters = dict.fromkeys(LASTING, 0) | {"chests": chests, "doors": doors}
        legs.append(PathLeg(PathGoal(tuple(counters.values()), rupees), PathPart(SEED, bytes([number] * 10))))
    return legs


def test_a_chest_whose_money_pays_for_nothing_is_no_goal() -> None:
    needed = without_needless_chests(ends_with((0, 1, 0), (1, 1, 0), (1, 2, 0), (2, 2, 0)))
    assert [goal.counters[CHESTS] for goal, *_ in needed] == [0, 0], "what follows asks for it no more"
    assert [part.actions for _, part, *_ in needed] == [bytes(10), bytes([1] * 10 + [2] * 10)]
    assert needed[1].goal.counters[LASTING.index("doors")] == 2


def test_a_counter_that_the_game_lacks_makes_no_chest_a_goal() -> None:
    unknown = LASTING.index("levers")
    legs = []
    for leg in ends_with((1, 0, 0), (1, 1, 0)):
        counters = list(leg.goal.counters)
        counters[unknown] = UNKNOWN_COUNT
        legs.append(leg._replace(goal=PathGoal(tuple(counters), leg.goal.rupees)))
    assert len(without_needless_chests(legs)) == 1


def test_a_path_keeps_its_first_seed_and_each_leg_its_share_of_the_search(
    monkeypatch: pytest.MonkeyPatch, player: LegPlayer, walk: bytes
) -> None:
    made: list[tuple[int, int]] = []

    class Found:
        """A search that finds the explored actions under a seed of its own."""

        def __init__(self, *search: Any) -> None:
            _, _, self._number, _, budget, _ = search
            made.append((self._number, budget))

        def run(self, *_: object) -> PathPart:
            return PathPart(1_000 + self._number, halves[self._number].part.actions)

    def as_it_is(player: LegPlayer, start: LegStart, part: PathPart, goal: PathGoal) -> Arrival:
        return Arrival(part.actions, 3, True, [])

    (whole, *_) = player.legs(START, PathPart(SEED, walk))
    actions, nowhere = whole.part.actions, PathGoal(tuple(count + 1 for count in whole.goal.counters))
    halves = [PathLeg(nowhere, PathPart(SEED, actions[begin:end]), end) for begin, end in ((0, 50), (50, 150))]
    monkeypatch.setattr("services.trainer.shortening.legs.without_needless_chests", lambda _: halves)
    monkeypatch.setattr("services.trainer.shortening.legs.LegSearch", Found)
    monkeypatch.setattr("services.trainer.shortening.legs.shortened", as_it_is)
    legs = PathLegs(ExplorationPlan("garden", SEED), START, PathPart(SEED, walk), budget=10 * len(walk))
    assert list(legs.shorten(FindsNothing())) == [PathPart(1_000, actions[:50]), PathPart(1_000, actions[:150])]
    assert made == [(0, 500), (1, 1_000)], "ten steps of search for each step of the explored path"
    legs.close()


def test_a_chest_is_a_goal_if_it_pays_or_gives_more_than_money() -> None:
    assert without_needless_chests(paying := ends_with((0, 1, 0), (1, 1, 20), (1, 2, 0))) == paying
    assert without_needless_chests(giving := ends_with((0, 1, 0), (1, 2, 0))) == giving
