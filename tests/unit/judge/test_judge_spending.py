"""What the budget counts: every request that was sent, and all that one without an answer may have cost."""

import asyncio
import contextlib
import dataclasses

import httpx
import pytest

from services.judge.adapters.route import RouteClient
from services.judge.domain.budget import Budget, BudgetTracker
from services.judge.rules_server.settings import Behaviour
from shared.contracts.scores import Usage
from shared.errors import ContractError, Transient
from tests.unit.judge.harness import GOOD, JudgeHarness, OpenHarness
from tests.unit.judge.segment_factory import RUN, archive, judge_input, recorded, walk


class Line(httpx.AsyncBaseTransport):
    """The way to a server: counts the requests, and the `broken` first ones end with `trouble`, or else HTTP 500."""

    def __init__(self, server: httpx.AsyncBaseTransport, broken: int, trouble: httpx.HTTPError | None) -> None:
        self._server, self.broken, self.requests, self._trouble = server, broken, 0, trouble

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if self.requests > self.broken:
            return await self._server.handle_async_request(request)
        if self._trouble is not None:
            raise self._trouble
        return httpx.Response(500)


def lined(route: RouteClient, broken: int, trouble: httpx.HTTPError | None = None) -> Line:
    """Put a line before the server of a route."""
    server = route.clients.transport
    assert server is not None
    route.clients.transport = line = Line(server, broken, trouble)
    return line


async def spent(one: JudgeHarness) -> dict[str, Usage]:
    return (await one.runtime.ledgers.open(RUN, 0)).budget.by_judge


async def test_what_is_never_sent_in_an_outage_leaves_the_budget_for_afterwards(harness: OpenHarness) -> None:
    one = harness(cache_size=0, budget_calls=60)
    lines = {name: lined(route, broken=10_000) for name, route in one.runtime.routes.items()}
    events = [await recorded(one.store, archive(f"s{n}", {**walk(1 + n), 3: {"rupees": n}}), f"s{n}") for n in range(6)]
    for _ in range(5):
        for event in events:
            with pytest.raises(Transient):
                await one.runtime.handlers.segment_ready(event)
    sent = sum(line.requests for line in lines.values())
    assert sent == 30, "ten requests opened the breaker of each route"
    assert sum(usage.calls for usage in (await spent(one)).values()) == sent

    for name, route in one.runtime.routes.items():
        lines[name].broken = 0
        route.breaker.record_success()  # it was open for its time
    for event in events:
        await one.runtime.handlers.segment_ready(event)
    assert {(await one.scores(f"s{n}")).status for n in range(6)} == {"judged"}


async def test_two_requests_of_one_ask_are_two_calls(harness: OpenHarness) -> None:
    one = harness()
    lined(one.runtime.routes["qwen25-7b"], broken=1)
    await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    assert {name: usage.calls for name, usage in (await spent(one)).items()} == {"state": 2, "puzzle": 1, "vision": 1}
    assert [result.usage.calls for result in (await one.scores()).judges] == [2, 1, 1]


async def test_a_request_whose_answer_got_lost_counts_with_all_it_may_have_cost(harness: OpenHarness) -> None:
    calm, rough = harness(), harness()
    lined(rough.runtime.routes["qwen25-7b"], broken=1, trouble=httpx.ReadError("the connection was lost"))
    for one in (calm, rough):
        await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    told = (await spent(calm))["state"]
    both = (await spent(rough))["state"]
    judge = rough.runtime.pool.judges[0].spec
    assert (both.calls, both.output_tokens - told.output_tokens) == (2, 3 * judge.max_output_tokens)
    assert both.prompt_tokens >= 2 * told.prompt_tokens


async def test_a_request_that_reached_nobody_cost_no_tokens(harness: OpenHarness) -> None:
    calm, rough = harness(), harness()
    lined(rough.runtime.routes["qwen25-7b"], broken=1, trouble=httpx.ConnectError("connection refused"))
    for one in (calm, rough):
        await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    told, both = (await spent(calm))["state"], (await spent(rough))["state"]
    assert (both.calls, both.prompt_tokens, both.output_tokens) == (2, told.prompt_tokens, told.output_tokens)


async def test_a_second_request_has_to_fit_beside_the_first_one_that_got_lost(harness: OpenHarness) -> None:
    one = harness(budget_tokens=20_000)
    line = lined(one.runtime.routes["qwen25-7b"], broken=10_000, trouble=httpx.ReadError("the connection was lost"))
    events = [await recorded(one.store, archive(f"s{n}", {**walk(1 + n), 3: {"rupees": n}}), f"s{n}") for n in range(9)]
    for event in events:
        with contextlib.suppress(Transient):
            await one.runtime.handlers.segment_ready(event)
    total = (await one.runtime.ledgers.open(RUN, 0)).budget.spent()
    assert line.requests >= 1
    assert total.prompt_tokens + total.output_tokens <= 20_000


async def test_a_second_request_is_not_sent_if_it_exceeds_the_budget(harness: OpenHarness) -> None:
    one = harness(budget_calls=3)
    line = lined(one.runtime.routes["qwen25-7b"], broken=1)
    await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    state, puzzle, vision = (await one.scores()).judges
    assert line.requests == 1
    assert (state.status, state.reasons) == ("abstained", ["the epoch's judge budget of 3 calls is used up"])
    assert (puzzle.status, vision.status) == ("judged", "judged")


async def test_nobody_is_asked_any_more_about_a_segment_that_cannot_be_shown(harness: OpenHarness) -> None:
    one, budget = harness(Behaviour(latency_ms=300)), BudgetTracker(Budget())
    damaged = dataclasses.replace(judge_input("s1", GOOD), frames=(b"no picture",) * 8)
    with pytest.raises(ContractError, match="no PNG picture"):
        await one.runtime.pool.evaluate(damaged, budget)
    booked = budget.spent()
    await asyncio.sleep(0.6)
    assert budget.spent() == booked, "after that the book of its epoch may be closed"
    assert one.calls == 0
