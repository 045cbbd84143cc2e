"""Rewards cannot be farmed, begin at nothing, and their terms say what they paid."""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from bramble.worlds.model import RoomId
from services.trainer.env.config import EnvConfig
from services.trainer.env.curriculum_starts import milestone_states
from services.trainer.env.detectors import STUCK_AFTER
from services.trainer.env.game_session import GameSession, StepResult
from services.trainer.env.rewards import RewardProfile, profiles
from services.trainer.env.terms import RUPEES_PAID, TERMS
from shared.contracts.run import RewardsName
from shared.errors import ContractError
from shared.game.emulator.start import StartState
from tests.unit.env.scripted_play import at_random, clear_again_and_again, play, playing, solve

STEPS = 5_000
WAIT, UP, DOWN, LEFT, RIGHT, A, B, START = range(8)
SEEDS = (1, 2, 3)
LINK_DEATH_TRIGGER, HEALTH = 0xCC34, 0xC6A2


def _return(choose: Callable[[int], int], seed: int = 0) -> float:
    with playing(EnvConfig(world="vale", seed=seed)) as session:
        return sum(play(session, STEPS, choose))


@pytest.fixture(scope="module")
def random_return() -> float:
    return statistics.mean(_return(at_random(seed), seed) for seed in SEEDS)


@pytest.fixture(scope="module")
def solver_return() -> float:
    rewards: list[float] = []
    solve("vale", lambda session, action, outcome: rewards.append(outcome.reward))
    return sum(rewards)


def _to_and_fro(step: int) -> int:
    return LEFT if step // 20 % 2 else RIGHT


def _menu(step: int) -> int:
    return START if step % 8 == 0 else WAIT


FARMS = {"standing still": lambda step: WAIT, "walking to and fro": _to_and_fro, "opening the menu": _menu}


@pytest.mark.slow
@pytest.mark.parametrize("farm", FARMS)
def test_a_farm_pays_less_than_chance_and_nothing_beside_progress(
    farm: str, random_return: float, solver_return: float
) -> None:
    earned = _return(FARMS[farm])

    assert earned < random_return
    assert earned < solver_return / 10


@pytest.mark.slow
def test_dying_at_once_pays_less_than_chance(random_return: float, solver_return: float) -> None:
    with playing(EnvConfig(world="vale")) as session:

        def die(step: int) -> int:
            session.emulator.poke(LINK_DEATH_TRIGGER, 0xFF)
            return WAIT

        # Every episode is one equal step, so a tenth of them shows what all would earn.
        earned = sum(play(session, STEPS // 10, die)) * 10

    assert earned < random_return
    assert earned < solver_return / 10
    assert earned < 0


def test_the_hearts_after_a_death_pay_nothing(tmp_path: Path) -> None:
    profile = tmp_path / "hearts.toml"
    profile.write_text('description = "hearts"\n[weights]\nhealth_lost = 1.0\nhealth_gained = 1.0\n')
    with playing(EnvConfig(world="garden", rewards=str(profile), terminal_on_death=False)) as session:
        session.emulator.poke(HEALTH, session.state.inventory.health - 4)
        assert session.step(WAIT).reward == -1.0
        session.emulator.poke(LINK_DEATH_TRIGGER, 0xFF)
        after = [session.step(WAIT).reward for _ in range(100)]
        assert (session.state.inventory.health, sum(after)) == (session.state.inventory.max_health, 0.0)
        session.emulator.poke(HEALTH, session.state.inventory.health - 4)
        assert session.step(WAIT).reward == -1.0


@pytest.mark.slow
def test_entering_a_room_again_and_again_pays_once(random_return: float, solver_return: float) -> None:
    start, forth = _just_entered_a_room()
    back = {UP: DOWN, DOWN: UP, LEFT: RIGHT, RIGHT: LEFT}[forth]
    with playing(EnvConfig(world="vale")) as session:
        session.set_starts([start])
        session.reset()
        here = session.state.key
        entered = 0

        def shuttle(step: int) -> int:
            nonlocal entered
            entered += session.state.transition
            return back if session.state.key == here else forth

        rewards = play(session, STEPS, shuttle)
        rooms = len(session.trace.rooms)

    assert rooms == 2
    assert entered > 100, "it went to and fro all the time"
    assert sum(rewards) < solver_return / 10
    assert sum(rewards[1_000:]) < 0, "nothing is left to earn after the first visits"
    assert sum(rewards) < random_return


@pytest.mark.slow
def test_what_enemies_drop_pays_in_each_room_only_so_much() -> None:
    (sword,) = [start for start in milestone_states("vale", 0) if start.name == "sword"]
    with playing(EnvConfig(world="vale", seed=1)) as session:
        session.set_starts([sword])
        session.reset()
        rewards = clear_again_and_again(session, "vale", RoomId(0, 0x22), RoomId(0, 0x21), STEPS)
        held = session.state.inventory.rupees or 0
        paid = session.term_sums["rupees"] / RewardProfile.load("default").weights["rupees"]

    assert held > 2 * RUPEES_PAID, "it went on collecting"
    assert paid <= 2 * RUPEES_PAID, "two rooms"
    assert sum(rewards[2_000:]) < 0, "nothing is left to earn after the first visits"


def _just_entered_a_room() -> tuple[StartState, int]:
    """A moment after the solver walked into its second room, and the direction in which it went."""
    found: list[tuple[StartState, int]] = []
    walked = [WAIT]

    def observe(session: GameSession, action: int, outcome: StepResult) -> None:
        if action in (UP, DOWN, LEFT, RIGHT) and len(session.trace.rooms) == 1:
            walked[0] = action
        if not found and len(session.trace.rooms) == 2 and session.state.control:
            found.append((StartState("entered", session.emulator.save()), walked[0]))

    solve("vale", observe)
    return found[0]


def test_the_first_step_after_any_start_pays_nothing_but_the_time() -> None:
    states = _states_of_a_walk(every=60)
    time_cost = RewardProfile.load("default").weights["time"]

    with playing(EnvConfig(world="garden")) as session:
        for state in states:
            session.set_starts([state])
            session.reset()
            outcome = session.step(WAIT)

            assert outcome.reward == pytest.approx(-time_cost), state.name


def _states_of_a_walk(every: int) -> list[StartState]:
    states: list[StartState] = []

    def observe(session: GameSession, action: int, outcome: StepResult) -> None:
        due = (len(states) + 1) * every
        if session.episode.steps >= due and session.state.control:
            states.append(StartState(f"step {session.episode.steps}", session.emulator.save()))

    solve("garden", observe)
    assert len(states) >= 3
    return states


def test_the_terms_add_up_to_the_return_and_say_what_paid() -> None:
    rewards: list[float] = []
    reports = []

    def observe(session: GameSession, action: int, outcome: StepResult) -> None:
        rewards.append(outcome.reward)
        if outcome.report is not None:
            reports.append(outcome.report)

    solve("garden", observe)

    (report,) = reports
    assert report.finished
    assert report.milestones == report.milestones_total == 4
    assert sum(report.terms.values()) == pytest.approx(sum(rewards)) == pytest.approx(report.total)
    assert report.terms["sword"] > 0
    assert report.terms["essence"] > 0
    assert report.terms["puzzle"] > 0
    assert report.terms["death"] == 0


def test_every_profile_of_the_package_names_known_terms() -> None:
    assert RewardProfile.load("seeds").weights["room"] == 20
    assert set(RewardProfile.load("default").weights) <= set(TERMS)


def test_only_the_comparison_profile_pays_for_movement() -> None:
    documented = {"movement": 0.1, "start_press": 0.5, "position_stuck": 1.0}
    for name in profiles():
        found = {term: weight for term, weight in RewardProfile.load(name).weights.items() if term in documented}
        assert found == (documented if name == "seeds" else {}), name


def _seeds_terms(actions: list[int]) -> dict[str, float]:
    with playing(EnvConfig(world="garden", rewards="seeds")) as session:
        play(session, len(actions), lambda step: actions[step])
        return dict(session.term_sums)


def test_each_step_that_moves_the_hero_pays() -> None:
    assert _seeds_terms([WAIT] * 60)["movement"] == 0
    walked = _seeds_terms([RIGHT, LEFT] * 30)["movement"]
    assert 0.1 * 30 <= walked <= 0.1 * 60


def test_a_press_of_start_costs_once() -> None:
    presses = ([START] * 5 + [WAIT] * 15) * 3
    assert _seeds_terms(presses)["start_press"] == pytest.approx(-0.5 * 3)


def test_a_stuck_position_costs_each_step_and_a_loop_does_not() -> None:
    stood = _seeds_terms([WAIT] * (STUCK_AFTER + 50))["position_stuck"]
    assert stood == pytest.approx(-50, abs=2)
    assert _seeds_terms(([RIGHT] * 20 + [LEFT] * 20) * 10)["position_stuck"] == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('description = "x"\n[weights]\nroon = 1.0\n', "unknown terms roon: choose from"),
        ('description = "x"\n[weights]\nroom = -1.0\n', "weights.room: Input should be greater than or equal to 0"),
        ("description = \n", r"reward profile odd\.toml:"),
    ],
)
def test_a_wrong_profile_is_refused_with_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(text)

    with pytest.raises(ContractError, match=sentence):
        RewardProfile.load(str(path))


def test_a_profile_that_cannot_be_read_is_refused_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "noise.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(ContractError, match=r"reward profile folder\.toml: .*Is a directory"):
        RewardProfile.load(str(tmp_path / "folder.toml"))
    with pytest.raises(ContractError, match=r"reward profile noise\.toml: 'utf-8' codec"):
        RewardProfile.load(str(tmp_path / "noise.toml"))


def test_a_run_may_name_each_profile_and_no_other() -> None:
    assert sorted(get_args(RewardsName)) == profiles()


def test_an_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(ContractError, match=r"unknown reward profile 'nonsense': choose from default, .*seeds"):
        RewardProfile.load("nonsense")
