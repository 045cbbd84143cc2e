"""Questions over real HTTP to the planner double: fast, slow, absent, invalid, full and over budget."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from services.trainer.planning.model_reply import read_plan, read_suggestion
from services.trainer.planning.plan import NoPlan, Plan
from services.trainer.planning.question import ModelAnswer, PacedAnswers, Question, answered, finished
from shared.contracts.driver import ModelCalls, QuestionMode
from tests.rules import RulesServer
from tests.servers import free_ports
from tests.unit.planning.threaded_models import planner_file, threaded_models


@pytest.fixture
def question(facts: str) -> Question:
    return Question("puzzle", facts, 0, "episode/0", 7)


@pytest.fixture
def behaving(rules_server: RulesServer) -> Iterator[RulesServer]:
    yield rules_server
    rules_server.behave(latency_ms=0, error_rate=0, garbage_rate=0, max_concurrent=1_000, obey_texts=False)


def mode_of(question: Question, mode: QuestionMode, facts: str | None = None) -> Question:
    return Question(mode, facts or question.facts, question.epoch, question.place, question.seed)


def test_double_plans_for_puzzle_and_dialog_and_suggests(rules_server: RulesServer, question: Question) -> None:
    with threaded_models(planner_file(rules_server.url)) as models:
        plan = read_plan(models.ask(question).text)
        assert isinstance(plan, Plan)
        assert [str(macro) for macro in plan.macros] == ["MOVE_TO 7,4"]
        spoken = json.loads(question.facts) | {"grid": ["..@."], "dialog": {"text": "Hello!", "choosing": False}}
        dialog = read_plan(models.ask(mode_of(question, "dialog", json.dumps(spoken))).text)
        assert isinstance(dialog, Plan)
        assert [str(macro) for macro in dialog.macros] == ["INTERACT yes"]
        assert read_suggestion(models.ask(mode_of(question, "text")).text).confidence == 0.8
        figures = models.service.figures(0)
    assert figures["puzzle"].outcomes == figures["dialog"].outcomes == {"answered": 1}
    assert figures["puzzle"].answer_seconds_mean is not None
    assert 0 < figures["puzzle"].answer_seconds_mean < 5
    assert figures["vision"] == ModelCalls(outcomes={}), "a route that was not asked is reported, too"


def test_absent_server_is_reported_and_its_breaker_opens(question: Question) -> None:
    file = planner_file(f"http://127.0.0.1:{free_ports(1)[0]}/v1", breaker_failures=2)
    with threaded_models(file) as models:
        first, second, third = (models.ask(question) for _ in range(3))
        assert (first.status, second.status, third.status) == ("unavailable",) * 3
        assert "breaker open after 2 failures" in third.detail
        assert first.pause_s == 1.0
        assert third.pause_s > 25
        calls = models.service.figures(0)["puzzle"]
        assert (calls.breaker, calls.outcomes, calls.answer_seconds_mean) == ("open", {"unavailable": 3}, None)


def test_slow_server_is_given_up_at_the_routes_limit(behaving: RulesServer, question: Question) -> None:
    behaving.behave(latency_ms=60_000)
    with threaded_models(planner_file(behaving.url, total_timeout_s=0.3, longest_timeout_s=0.3)) as models:
        begun = time.monotonic()
        answer = models.ask(question)
        assert answer.status == "unavailable"
        assert "no answer within 0.3 s" in answer.detail
        assert time.monotonic() - begun < 3


def test_full_route_is_busy_and_asks_no_more(behaving: RulesServer, question: Question) -> None:
    behaving.behave(latency_ms=400)
    with threaded_models(planner_file(behaving.url, max_concurrent=2)) as models:
        futures = [models.submit(question) for _ in range(6)]
        found = [future.result(10) for future in futures]
    assert sorted(answer.status for answer in found) == ["answered"] * 2 + ["busy"] * 4
    assert all(answer.pause_s > 0 for answer in found if answer.status == "busy")


def test_reply_outside_the_schema_is_no_plan(behaving: RulesServer, question: Question) -> None:
    behaving.behave(garbage_rate=1)
    with threaded_models(planner_file(behaving.url)) as models:
        for seed in range(12):
            answer = models.ask(Question("puzzle", question.facts, 0, "e/0", seed))
            assert isinstance(read_plan(answer.text), NoPlan)


def test_planner_and_guidance_have_separate_budgets_per_epoch(rules_server: RulesServer, question: Question) -> None:
    with threaded_models(planner_file(rules_server.url, {"planner": {"calls": 2}})) as models:
        statuses = [models.ask(question).status for _ in range(3)]
        assert statuses == ["answered", "answered", "exhausted"]
        assert models.ask(mode_of(question, "dialog")).status == "exhausted"
        assert models.ask(mode_of(question, "text")).status == "answered"
        later = Question("puzzle", question.facts, 1, "episode/0", 7)
        assert models.ask(later).status == "answered"
        assert models.service.figures(1)["puzzle"].outcomes == {"answered": 1}, "figures are of the new epoch"


def test_an_epoch_without_questions_has_no_calls(rules_server: RulesServer, question: Question) -> None:
    with threaded_models(planner_file(rules_server.url)) as models:
        assert models.ask(question).status == "answered"
        assert models.service.figures(0)["puzzle"].outcomes == {"answered": 1}
        assert models.service.figures(1)["puzzle"] == ModelCalls(outcomes={})
        assert models.ask(question).status == "answered"
        assert models.service.figures(1)["puzzle"].outcomes == {"answered": 1}, "a late question counts now"


def test_missing_route_and_refused_request_are_refused(rules_server: RulesServer, question: Question) -> None:
    file = planner_file(rules_server.url)
    only = file.model_copy(update={"routes": {"puzzle": file.routes["puzzle"].model_copy(update={"model": "absent"})}})
    with threaded_models(only) as models:
        assert "no route dialog" in models.ask(mode_of(question, "dialog")).detail
        wrong = models.ask(question)
        assert (wrong.status, wrong.pause_s) == ("refused", 60)
        assert "unknown model 'absent'" in wrong.detail


def test_questions_within_a_pause_reach_no_model(question: Question) -> None:
    asked, now = [], [0.0]

    class Away:
        def submit(self, question: Question) -> "Future[ModelAnswer]":
            asked.append(question)
            return answered(ModelAnswer("unavailable", pause_s=10))

    paced = PacedAnswers(Away(), lambda: now[0])
    statuses = []
    for now[0] in (0.0, 1.0, 9.9, 10.1):
        found = finished(paced.submit(question))
        assert found is not None
        statuses.append(found.status)
    assert statuses == ["unavailable", "paused", "paused", "unavailable"]
    assert len(asked) == 2
    other = finished(paced.submit(mode_of(question, "text")))
    assert other is not None
    assert other.status == "unavailable", "each mode has its own pause"
