"""The contract of every chat model: one behind HTTP, the rules in process, and the tests' scripted model."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from services.judge.adapters.rules_model import RulesModel
from services.judge.config import JudgeSpec
from services.judge.rules_server.app import create_app
from services.judge.rules_server.settings import RulesServerSettings
from services.judge.service.prompt_builder import build_prompt
from services.judge.telemetry import ROUTES
from shared.contracts.ids import JudgeName
from shared.llm.budget import BudgetExhausted
from shared.llm.port import ChatModel, Choice, CompletionRequest
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec
from tests.unit.judge.garbage import NAMES, TEXT
from tests.unit.judge.scripted_model import ScriptedModel
from tests.unit.judge.segment_factory import judge_input

SPEC = JudgeSpec(name=JudgeName("state"), route="any", model="qwen25-7b", dimensions=NAMES)


@pytest.fixture(params=["route", "rules", "scripted"])
async def model(request: pytest.FixtureRequest) -> AsyncIterator[ChatModel]:
    if request.param == "rules":
        yield RulesModel()
    elif request.param == "scripted":
        yield ScriptedModel(*[Choice(TEXT, "stop")] * 11)
    else:
        route = RouteClient("any", RouteSpec.model_validate({"url": "http://rules.test/v1"}), ROUTES)
        route.clients.transport = httpx.ASGITransport(create_app(RulesServerSettings()))
        yield route
        await route.close()


@pytest.fixture
async def completion_request() -> CompletionRequest:
    return CompletionRequest((await build_prompt(SPEC, judge_input(), None)).body, 3, 1, "demo")


@pytest.mark.parametrize("votes", [1, 3, 11])
async def test_server_returns_as_many_votes_as_requested(
    model: ChatModel, completion_request: CompletionRequest, votes: int
) -> None:
    completion = await model.complete(replace(completion_request, n=votes))
    assert len(completion.choices) == votes
    for choice in completion.choices:
        assert choice.finish_reason == "stop"
        assert set(json.loads(str(choice.content))) == {"reason", *NAMES}


async def test_request_is_counted_before_it_is_sent_and_completion_has_its_cost(
    model: ChatModel, completion_request: CompletionRequest
) -> None:
    events: list[str] = []
    tracked = replace(
        completion_request,
        on_send=lambda: events.append("send"),
        on_lost_response=lambda: events.append("lost response"),
    )
    completion = await model.complete(tracked)
    assert events == ["send"]
    assert None not in (completion.prompt_tokens, completion.output_tokens)
    assert model.seconds_since_response() < 5


async def test_call_over_the_budget_is_not_sent(model: ChatModel, completion_request: CompletionRequest) -> None:
    def forbidden() -> None:
        raise BudgetExhausted("used up")

    with pytest.raises(BudgetExhausted, match="used up"):
        await model.complete(replace(completion_request, on_send=forbidden))
