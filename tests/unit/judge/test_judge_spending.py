"""What the budget counts: every sent request, and the upper bound of one whose response is lost."""

import asyncio
import contextlib
import dataclasses

import httpx
import pytest

from services.judge.rules_server.settings import Behaviour
from shared.contracts.scores import Usage
from shared.errors import ContractError, Transient
from shared.llm.budget import Budget, BudgetTracker
from shared.llm.route import RouteClient
from tests.unit.judge.harness import GOOD, JudgeHarness, OpenHarness
from tests.unit.judge.segment_factory import RUN, archive, judge_input, recorded, walk


class FaultyTransport(httpx.AsyncBaseTransport):
    """Counts requests; the first `broken` ones raise `error`, or else return HTTP 500."""

    def __init__(self, server: httpx.AsyncBaseTransport, broken: int, error: httpx.HTTPError | None) -> None:
        self._server, self.broken, self.requests, self._error = server, broken, 0, error

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if self.requests > self.broken:
            return await self._server.handle_async_request(request)
        if self._error is not None:
            raise self._error
        return httpx.Response(500)


def make_faulty(route: RouteClient, broken: int, error: httpx.HTTPError | None = None) -> FaultyTransport:
    """Put a faulty transport before the server of a route."""
    server = route.clients.transport
    assert server is not None
    route.clients.transport = transport = FaultyTransport(server, broken, error)
    return transport


async def spent(one: JudgeHarness) -> dict[str, Usage]:
    return (await one.runtime.ledgers.open(RUN, 0)).budget.by_payer


async def test_calls_not_sent_during_an_outage_leave_the_budget_untouched(harness: OpenHarness) -> None:
    one = harness(cache_size=0, budget_calls=60)
    transports = {name: make_faulty(route, broken=10_000) for name, route in one.runtime.routes.items()}
    events = [await recorded(one.store, archive(f"s{n}", {**walk(1 + n), 3: {"rupees": n}}), f"s{n}") for n in range(6)]
    for _ in range(5):
        for event in events:
            with pytest.raises(Transient):
                await one.runtime.handlers.segment_ready(event)
    sent = sum(transport.requests for transport in transports.values())
    assert sent == 30, "ten requests opened the breaker of each route"
    assert sum(usage.calls for usage in (await spent(one)).values()) == sent

    for name, route in one.runtime.routes.items():
        transports[name].broken = 0
        route.breaker.record_success()  # the open period ends
    for event in events:
        await one.runtime.handlers.segment_ready(event)
    assert {(await one.scores(f"s{n}")).status for n in range(6)} == {"judged"}


async def test_two_requests_of_one_call_count_twice(harness: OpenHarness) -> None:
    one = harness()
    make_faulty(one.runtime.routes["rules-state"], broken=1)
    await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    assert {name: usage.calls for name, usage in (await spent(one)).items()} == {"state": 2, "puzzle": 1, "vision": 1}
    assert [result.usage.calls for result in (await one.scores()).judges] == [2, 1, 1]


async def test_lost_response_counts_at_its_upper_bound(harness: OpenHarness) -> None:
    calm, rough = harness(), harness()
    make_faulty(rough.runtime.routes["rules-state"], broken=1, error=httpx.ReadError("the connection was lost"))
    for one in (calm, rough):
        await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    one_call = (await spent(calm))["state"]
    both = (await spent(rough))["state"]
    judge = rough.runtime.pool.judges[0].spec
    assert (both.calls, both.output_tokens - one_call.output_tokens) == (2, 3 * judge.max_output_tokens)
    assert both.prompt_tokens >= 2 * one_call.prompt_tokens


async def test_request_that_no_server_received_costs_no_tokens(harness: OpenHarness) -> None:
    calm, rough = harness(), harness()
    make_faulty(rough.runtime.routes["rules-state"], broken=1, error=httpx.ConnectError("connection refused"))
    for one in (calm, rough):
        await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    one_call, both = (await spent(calm))["state"], (await spent(rough))["state"]
    assert (both.calls, both.prompt_tokens, both.output_tokens) == (2, one_call.prompt_tokens, one_call.output_tokens)


async def test_second_request_must_fit_beside_the_lost_first_one(harness: OpenHarness) -> None:
    one = harness(budget_tokens=20_000)
    transport = make_faulty(
        one.runtime.routes["rules-state"], broken=10_000, error=httpx.ReadError("the connection was lost")
    )
    events = [await recorded(one.store, archive(f"s{n}", {**walk(1 + n), 3: {"rupees": n}}), f"s{n}") for n in range(9)]
    for event in events:
        with contextlib.suppress(Transient):
            await one.runtime.handlers.segment_ready(event)
    total = (await one.runtime.ledgers.open(RUN, 0)).budget.spent()
    assert transport.requests >= 1
    assert total.prompt_tokens + total.output_tokens <= 20_000


async def test_second_request_over_the_budget_is_not_sent(harness: OpenHarness) -> None:
    one = harness(budget_calls=3)
    transport = make_faulty(one.runtime.routes["rules-state"], broken=1)
    await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    state, puzzle, vision = (await one.scores()).judges
    assert transport.requests == 1
    assert (state.status, state.reasons) == ("abstained", ["the epoch's judge budget of 3 calls is used up"])
    assert (puzzle.status, vision.status) == ("judged", "judged")


async def test_damaged_frame_cancels_the_other_judges(harness: OpenHarness) -> None:
    one, budget = harness(Behaviour(latency_ms=300)), BudgetTracker(Budget())
    damaged = dataclasses.replace(judge_input("s1", GOOD), frames=(b"no picture",) * 8)
    with pytest.raises(ContractError, match="not a PNG picture"):
        await one.runtime.pool.evaluate(damaged, budget)
    booked = budget.spent()
    await asyncio.sleep(0.6)
    assert budget.spent() == booked, "the ledger of the epoch may be evicted from now on"
    assert one.calls == 0
