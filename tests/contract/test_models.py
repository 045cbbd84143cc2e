"""The contract of every chat model: one behind HTTP, the rules in process, and the tests' scripted model."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from services.judge.adapters.route import RouteClient
from services.judge.adapters.rules_model import RulesModel
from services.judge.config import JudgeSpec, RouteSpec
from services.judge.domain.budget import BudgetExhausted
from services.judge.ports import ChatModel, Choice, CompletionRequest
from services.judge.rules_server.app import create_app
from services.judge.rules_server.settings import RulesServerSettings
from services.judge.service.prompt_builder import build_prompt
from shared.contracts.ids import JudgeName
from tests.unit.judge.garbage import NAMES, TEXT
from tests.unit.judge.scripted_model import ScriptedModel
from tests.unit.judge.segment_factory import judge_input

SPEC = JudgeSpec(name=JudgeName("state"), route="any", model="qwen25-7b", dimensions=NAMES)


@pytest.fixture(params=["route", "rules", "fake"])
async def model(request: pytest.FixtureRequest) -> AsyncIterator[ChatModel]:
    if request.param == "rules":
        yield RulesModel()
    elif request.param == "fake":
        yield ScriptedModel(*[Choice(TEXT, "stop")] * 11)
    else:
        route = RouteClient("any", RouteSpec.model_validate({"url": "http://rules.test/v1"}))
        route.clients.transport = httpx.ASGITransport(create_app(RulesServerSettings()))
        yield route
        await route.close()


@pytest.fixture
async def question() -> CompletionRequest:
    return CompletionRequest((await build_prompt(SPEC, judge_input(), None)).body, 3, 1, "demo")


@pytest.mark.parametrize("votes", [1, 3, 11])
async def test_server_returns_as_many_votes_as_requested(
    model: ChatModel, question: CompletionRequest, votes: int
) -> None:
    answer = await model.complete(replace(question, n=votes))
    assert len(answer.choices) == votes
    for choice in answer.choices:
        assert choice.finish_reason == "stop"
        assert set(json.loads(str(choice.content))) == {"reason", *NAMES}


async def test_request_is_counted_before_it_is_sent_and_completion_has_its_cost(
    model: ChatModel, question: CompletionRequest
) -> None:
    events: list[str] = []
    asked = replace(
        question, on_send=lambda: events.append("send"), on_lost_response=lambda: events.append("lost response")
    )
    answer = await model.complete(asked)
    assert events == ["send"]
    assert None not in (answer.prompt_tokens, answer.output_tokens)
    assert model.seconds_since_response() < 5


async def test_call_over_the_budget_is_not_sent(model: ChatModel, question: CompletionRequest) -> None:
    def forbidden() -> None:
        raise BudgetExhausted("used up")

    with pytest.raises(BudgetExhausted, match="used up"):
        await model.complete(replace(question, on_send=forbidden))
