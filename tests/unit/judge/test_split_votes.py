"""Votes that come in several calls: a route that fails between them costs no vote and invents none."""

import json
from collections.abc import Callable

import httpx
import pytest

from services.judge.config import JudgeSpec
from services.judge.service.judge import Judge
from services.judge.telemetry import ROUTES
from shared.contracts.ids import JudgeName
from shared.contracts.scores import JudgeResult
from shared.llm.budget import Budget, BudgetTracker
from shared.llm.port import RouteUnavailable
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec
from tests.unit.judge.segment_factory import judge_input

SPEC = JudgeSpec(name=JudgeName("one"), route="r", model="m", dimensions=("progress",), votes=(3, 7))
REFUSAL = httpx.Response(
    400, json={"error": {"message": "Field 'n': Value must be between 1 <= value <= 1, but got 3"}}
)


class OneChoiceServer:
    """Accepts one choice a request; the request with the number `broken` (from 0) fails. Votes follow `votes`."""

    def __init__(self, *votes: int, broken: int = 99) -> None:
        self.votes, self.broken, self.seeds = votes, broken, list[int]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if body["n"] > 1:
            return REFUSAL
        number = len(self.seeds)
        self.seeds.append(body["seed"])
        if number == self.broken:
            raise httpx.ConnectError("connection refused")
        reply = json.dumps({"reason": f"vote {number}", "progress": self.votes[number % len(self.votes)]})
        choice = {"message": {"content": reply}, "finish_reason": "stop"}
        return httpx.Response(200, json={"choices": [choice], "usage": {"prompt_tokens": 900, "completion_tokens": 20}})


def judge_of(server: Callable[[httpx.Request], httpx.Response]) -> Judge:
    spec = RouteSpec.model_validate({"url": "http://server.test/v1", "attempts": 1})
    route = RouteClient("r", spec, ROUTES)
    route.clients.transport = httpx.MockTransport(server)
    return Judge(SPEC, route)


async def judged(server: Callable[[httpx.Request], httpx.Response], budget: Budget) -> JudgeResult:
    return await judge_of(server).evaluate(judge_input(), BudgetTracker(budget))


async def test_each_vote_has_its_own_seed_and_its_cost_counts() -> None:
    server = OneChoiceServer(4, 4, 3)
    result = await judged(server, Budget())
    assert result.dimensions["progress"].votes == [4, 4, 3]
    assert [seed - server.seeds[0] for seed in server.seeds] == [0, 1, 2]
    assert (result.usage.calls, result.usage.prompt_tokens) == (4, 2_700), "the refused call cost no tokens"


async def test_split_votes_request_more_one_by_one() -> None:
    server = OneChoiceServer(0, 5, 3)
    result = await judged(server, Budget())
    assert len(result.dimensions["progress"].votes) == 7
    assert len(set(server.seeds)) == 7


async def test_a_failure_among_the_first_votes_is_retried_later() -> None:
    with pytest.raises(RouteUnavailable, match="connection refused"):
        await judged(OneChoiceServer(4, broken=1), Budget())


async def test_votes_before_a_failure_are_not_asked_and_paid_again() -> None:
    server, budget = OneChoiceServer(4, 3, 2, broken=2), BudgetTracker(Budget())
    judge = judge_of(server)
    with pytest.raises(RouteUnavailable):
        await judge.evaluate(judge_input(), budget)
    result = await judge.evaluate(judge_input(), budget)
    assert [seed - server.seeds[0] for seed in server.seeds] == [0, 1, 2, 2], "the last one is asked for again"
    assert len(result.dimensions["progress"].votes) == 3
    assert result.usage.prompt_tokens == 2_700, "what the first attempt paid is part of the result"
    again = await judge.evaluate(judge_input(), budget)
    assert len(server.seeds) == 7, "without a cache, a finished segment is judged from the beginning"
    assert again.usage.prompt_tokens == 2_700


async def test_a_failure_among_further_votes_keeps_the_first() -> None:
    result = await judged(OneChoiceServer(0, 5, 3, broken=4), Budget())
    assert result.status == "judged"
    assert result.dimensions["progress"].votes == [0, 5, 3, 0]
    assert any("no more votes" in reason for reason in result.reasons)


async def test_one_vote_of_three_within_the_budget_is_no_score() -> None:
    result = await judged(OneChoiceServer(4), Budget(calls=2))  # the refused call, and one vote
    assert result.status == "abstained"
    assert any("budget of 2 calls is used up" in reason for reason in result.reasons)
