"""A model plans in a running game: it solves, waits within its limit, and returns control in every other case."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from services.trainer.domain.policy_switch import SwitchLimits
from services.trainer.domain.wait_gate import FIRST_PAUSE_S, WaitGate
from services.trainer.planning.model_planner import ModelPlanner
from services.trainer.planning.plan import NoPlan, Plan
from services.trainer.planning.question import AnswerSource, ModelAnswer, PacedAnswers
from services.trainer.planning.takeover import Takeover
from shared.contracts.run import PlannerConfig
from shared.game.recording.segment import PLANNER, POLICY
from tests.rules import RulesServer
from tests.unit.executor.played import Played, played
from tests.unit.planning.answers_by_hand import ByHand
from tests.unit.planning.switch_endings import successes
from tests.unit.planning.threaded_models import planner_file, threaded_models

BOWER = (0, 0x02, (4, 6))
PLAN = '{"sub_goal": "press", "macros": ["MOVE_TO 7,4"], "fallback": [], "confidence": 0.9}'


class Table:
    """A game beside the button, its planner, and a clock."""

    def __init__(self, game: Played, answers: AnswerSource, wait_s: float = 5.0, min_confidence: float = 0.2) -> None:
        self.now, self.game, self.gate = 0.0, game, WaitGate()
        config = PlannerConfig(mode="model", wait_s=wait_s, min_confidence=min_confidence)
        self.planner = ModelPlanner(PacedAnswers(answers), self.gate, config, lambda: (3, "e3-0"), lambda: self.now)
        limits = SwitchLimits(cool_down=20)
        self.takeover = Takeover(self.planner, limits, ("dialog", "puzzle"), outdoors=True)
        game.session.takeover = self.takeover
        game.session.reset()
        game.put(*BOWER)

    def play(self, calls: int, seconds: float = 0.01) -> list[int | None]:
        """Who acted in each call of a vector environment; None: the environment stood still."""
        found: list[int | None] = []
        for _ in range(calls):
            self.now += seconds
            if self.game.session.holds():
                found.append(None)
            else:
                self.game.session.step(0)
                found.append(self.takeover.actor)
        return found


@contextmanager
def table(answers: AnswerSource, **changes: float) -> Iterator[Table]:
    with played("garden") as game:
        yield Table(game, answers, **changes)


def test_model_solves_the_puzzle(rules_server: RulesServer) -> None:
    with threaded_models(planner_file(rules_server.url)) as models, table(models, wait_s=60) as one:
        actors: list[int | None] = []
        while len(actors) < 100_000 and not one.game.session.state.progress.room(0, 0x02) & 0x80:
            actors += one.play(1, seconds=0.0)
            if actors[-1] is None:
                time.sleep(0.001)  # the models answer in another thread
        assert one.game.session.state.progress.room(0, 0x02) & 0x80, "the button is pressed"
        assert PLANNER in actors
        one.play(10)
        assert successes(one.takeover.switch) == 1
        assert {(question.mode, question.epoch) for question in models.asked} == {("puzzle", 3)}


def test_environment_stands_still_until_the_answer_comes() -> None:
    answers = ByHand()
    with table(answers) as one:
        before = one.game.session.episode.steps
        actors = one.play(50)
        still = one.game.session.episode.steps
        assert actors.count(None) > 40
        assert still - before == 50 - actors.count(None)
        answers.futures[-1].set_result(ModelAnswer("answered", PLAN))
        assert one.play(1) == [PLANNER]
        assert one.takeover.outcomes["late"] == 0


def test_wait_ends_at_its_limit_and_the_policy_acts() -> None:
    answers = ByHand()
    with table(answers, wait_s=2.0) as one:
        actors = one.play(30, seconds=0.1)
        held = actors.count(None)
        assert 15 <= held <= 21
        assert actors[-1] == POLICY
        assert not one.gate.is_open(one.now)
        one.play(200, seconds=0.001)
        assert one.takeover.outcomes["late"] >= 1
        assert None not in one.play(200, seconds=0.001), "no environment waits while the gate is closed"
        assert len(answers.asked) >= 2, "it still asks, so that a model that is back is found"
        one.now += FIRST_PAUSE_S
        assert None in one.play(200, seconds=0.001)


def test_only_the_environment_on_trial_ends_the_trial() -> None:
    answers = ByHand()
    with table(answers) as one:
        one.play(6)
        assert not one.gate.is_open(one.now), "it waits on trial"
        paused = PacedAnswers(ByHand(), clock=lambda: -1.0)
        other = ModelPlanner(paused, one.gate, PlannerConfig(mode="model"), lambda: (3, "other"), lambda: one.now)
        other.ask(one.game.view, "dialog")
        assert isinstance(other.answer(), NoPlan)
        assert not one.gate.is_open(one.now)
        answers.futures[-1].set_result(ModelAnswer("unavailable", detail="away"))
        one.play(1)
        assert one.gate.is_open(one.now)


def test_without_a_wait_the_policy_acts_meanwhile() -> None:
    answers = ByHand()
    with table(answers, wait_s=0.0) as one:
        assert set(one.play(30)) == {POLICY}
        answers.futures[-1].set_result(ModelAnswer("answered", PLAN))
        assert PLANNER in one.play(2)


@pytest.mark.parametrize(
    "answer",
    [
        ModelAnswer("unavailable", detail="away"),
        ModelAnswer("exhausted"),
        ModelAnswer("answered", "no plan"),
        ModelAnswer("answered", PLAN.replace("MOVE_TO 7,4", "PRESS START")),
        ModelAnswer("answered", PLAN.replace("0.9", "0.1")),
        ModelAnswer("answered", PLAN.replace("MOVE_TO 7,4", "MOVE_TO 0,0")),
    ],
)
def test_every_other_answer_returns_control(answer: ModelAnswer) -> None:
    answers = ByHand()
    with table(answers) as one:
        one.play(6)
        answers.futures[-1].set_result(answer)
        actors = one.play(12)
        assert one.takeover.switch.ending == "given_up"
        assert actors[-1] == POLICY
        assert successes(one.takeover.switch) == 0


def test_plan_for_a_room_that_was_left_is_not_carried_out() -> None:
    answers = ByHand()
    with table(answers, wait_s=0.0) as one:
        one.play(4)
        one.takeover._room = (9, 9)  # the room in which it was asked
        answers.futures[-1].set_result(ModelAnswer("answered", PLAN))
        assert PLANNER not in one.play(10)
        assert one.takeover.outcomes["no_plan"] == 1


def test_died_planning_process_is_a_model_that_is_away() -> None:
    answers = ByHand()
    with table(answers) as one:
        one.play(6)
        answers.futures[-1].set_exception(ConnectionError("gone"))
        assert one.play(5)[-1] == POLICY
        found = one.planner.answer()
    assert isinstance(found, NoPlan)
    assert "planning process ended: ConnectionError" in found.reason


def test_equal_questions_of_an_episode_have_equal_seeds() -> None:
    def seeds() -> list[tuple[str, int]]:
        answers = ByHand()
        with table(answers, wait_s=0.0) as one:
            one.play(300)
        return [(question.place, question.seed) for question in answers.asked]

    first = seeds()
    assert first == seeds()
    assert [place for place, _ in first] == [f"e3-0/{number}" for number in range(len(first))]
    assert len({seed for _, seed in first}) == len(first) > 1


def test_answer_is_a_plan() -> None:
    answers = ByHand()
    with table(answers) as one:
        one.play(6)
        assert one.planner.answer() is None
        answers.futures[-1].set_result(ModelAnswer("answered", PLAN))
        assert isinstance(one.planner.answer(), Plan)


def test_no_question_is_made_while_the_models_demand_a_pause() -> None:
    models = ByHand()
    with table(models, wait_s=0) as one:
        one.play(10)
        models.futures[0].set_result(ModelAnswer("unavailable", pause_s=60.0))
        one.play(100)
        assert one.takeover.switch.takeovers > 1
        assert len(models.asked) == 1
        assert one.takeover.outcomes["no_plan"] == one.takeover.switch.takeovers
