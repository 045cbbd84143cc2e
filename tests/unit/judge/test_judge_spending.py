"""What counts as a call of the budget: every request that was sent, and nothing else."""

import asyncio
import dataclasses

import httpx
import pytest

from services.judge.adapters.route import Route
from services.judge.domain.budget import Budget, Ledger
from services.judge.rules_server.settings import Behaviour
from shared.contracts.scores import Usage
from shared.errors import ContractError, Transient
from tests.unit.judge.bench import GOOD, Bench, Open
from tests.unit.judge.recordings import RUN, archive, clip, recorded, walk


class Line(httpx.AsyncBaseTransport):
    """The way to a server: counts the requests, and answers those of the `broken` ones itself, with an error."""

    def __init__(self, server: httpx.AsyncBaseTransport, broken: int) -> None:
        self._server, self.broken, self.requests = server, broken, 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if self.requests <= self.broken:
            return httpx.Response(500)
        return await self._server.handle_async_request(request)


def lined(route: Route, broken: int) -> Line:
    """Put a line before the server of a route."""
    server = route.connections.transport
    assert server is not None
    route.connections.transport = line = Line(server, broken)
    return line


async def spent(one: Bench) -> dict[str, Usage]:
    return (await one.court.books.book(RUN, 0)).ledger.by_judge


async def test_what_is_never_sent_in_an_outage_leaves_the_budget_for_afterwards(bench: Open) -> None:
    one = bench(cache_size=0, budget_calls=60)
    lines = {name: lined(route, broken=10_000) for name, route in one.court.routes.items()}
    events = [await recorded(one.store, archive(f"s{n}", {**walk(1 + n), 3: {"rupees": n}}), f"s{n}") for n in range(6)]
    for _ in range(5):
        for event in events:
            with pytest.raises(Transient):
                await one.court.handlers.segment_ready(event)
    sent = sum(line.requests for line in lines.values())
    assert sent == 30, "ten requests opened the breaker of each route"
    assert sum(usage.calls for usage in (await spent(one)).values()) == sent

    for name, route in one.court.routes.items():
        lines[name].broken = 0
        route.breaker.succeeded()  # it was open for its time
    for event in events:
        await one.court.handlers.segment_ready(event)
    assert {(await one.scores(f"s{n}")).status for n in range(6)} == {"judged"}


async def test_two_requests_of_one_ask_are_two_calls(bench: Open) -> None:
    one = bench()
    lined(one.court.routes["qwen25-7b"], broken=1)
    await one.court.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    assert {name: usage.calls for name, usage in (await spent(one)).items()} == {"state": 2, "puzzle": 1, "vision": 1}
    assert [result.usage.calls for result in (await one.scores()).judges] == [2, 1, 1]


async def test_a_second_request_is_not_sent_if_it_exceeds_the_budget(bench: Open) -> None:
    one = bench(budget_calls=3)
    line = lined(one.court.routes["qwen25-7b"], broken=1)
    await one.court.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    state, puzzle, vision = (await one.scores()).judges
    assert line.requests == 1
    assert (state.status, state.reasons) == ("abstained", ["the epoch's judge budget of 3 calls is used up"])
    assert (puzzle.status, vision.status) == ("judged", "judged")


async def test_nobody_is_asked_any_more_about_a_segment_that_cannot_be_shown(bench: Open) -> None:
    one, ledger = bench(Behaviour(latency_ms=300)), Ledger(Budget())
    damaged = dataclasses.replace(clip("s1", GOOD), frames=(b"no picture",) * 8)
    with pytest.raises(ContractError, match="no PNG picture"):
        await one.court.panel.judge(damaged, ledger)
    booked = ledger.spent()
    await asyncio.sleep(0.6)
    assert ledger.spent() == booked, "after that the book of its epoch may be closed"
    assert one.calls == 0
