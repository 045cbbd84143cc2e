"""What every model that judges ask must do, told once: one behind HTTP, rules in the process, and the tests' fake."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from services.judge.adapters.route import Route
from services.judge.adapters.rules import RulesModel
from services.judge.briefing import brief
from services.judge.config import JudgeSpec, RouteSpec
from services.judge.domain.budget import BudgetExhausted
from services.judge.ports import Choice, Model, Question
from services.judge.rules_server.app import create_app
from services.judge.rules_server.settings import Settings
from shared.contracts.ids import JudgeName
from tests.unit.judge.garbage import NAMES, TEXT
from tests.unit.judge.recordings import clip
from tests.unit.judge.says import Says

SPEC = JudgeSpec(name=JudgeName("state"), route="any", model="qwen25-7b", dimensions=NAMES)


@pytest.fixture(params=["route", "rules", "fake"])
async def model(request: pytest.FixtureRequest) -> AsyncIterator[Model]:
    if request.param == "rules":
        yield RulesModel()
    elif request.param == "fake":
        yield Says(*[Choice(TEXT, "stop")] * 11)
    else:
        route = Route("any", RouteSpec.model_validate({"url": "http://rules.test/v1"}))
        route.connections.transport = httpx.ASGITransport(create_app(Settings()))
        yield route
        await route.close()


@pytest.fixture
async def question() -> Question:
    return Question((await brief(SPEC, clip(), None)).body, 3, 1, "demo")


@pytest.mark.parametrize("votes", [1, 3, 11])
async def test_it_gives_as_many_votes_as_it_is_asked_for(model: Model, question: Question, votes: int) -> None:
    answer = await model.ask(replace(question, n=votes))
    assert len(answer.choices) == votes
    for choice in answer.choices:
        assert choice.finish_reason == "stop"
        assert set(json.loads(str(choice.content))) == {"reason", *NAMES}


async def test_what_is_sent_is_counted_before_it_is_sent_and_an_answer_says_its_cost_itself(
    model: Model, question: Question
) -> None:
    told: list[str] = []
    asked = replace(question, sending=lambda: told.append("sending"), unanswered=lambda: told.append("unanswered"))
    answer = await model.ask(asked)
    assert told == ["sending"]
    assert None not in (answer.prompt_tokens, answer.output_tokens)
    assert model.silent_s() < 5


async def test_what_the_books_forbid_is_not_asked(model: Model, question: Question) -> None:
    def forbidden() -> None:
        raise BudgetExhausted("used up")

    with pytest.raises(BudgetExhausted, match="used up"):
        await model.ask(replace(question, sending=forbidden))
