"""A server in trouble, whichever number it says so with: its route rests, and nobody is sent to the settings."""

import asyncio

import httpx
import pytest

from services.judge.adapters.route import Route
from services.judge.config import RouteSpec
from services.judge.ports import Question, RouteUnavailable

QUESTION = Question({"messages": []}, 3, 1, "demo")


def route(answer: httpx.Response) -> Route:
    spec = RouteSpec.model_validate({"url": "http://server.test/v1", "breaker_failures": 2, "total_timeout_s": 5})
    opened = Route("r", spec)
    opened.connections.transport = httpx.MockTransport(lambda _: answer)
    return opened


@pytest.mark.parametrize("status", [500, 501, 508, 520, 524, 529])
async def test_trouble_of_the_server_opens_the_breaker(status: int) -> None:
    asked = route(httpx.Response(status, text="<html>the origin is down</html>"))
    with pytest.raises(RouteUnavailable, match=f"HTTP {status}") as told:
        await asked.ask(QUESTION)
    assert "check model name" not in str(told.value)
    with pytest.raises(RouteUnavailable, match="breaker open after 2 failures"):
        await asked.ask(QUESTION)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_trouble_of_the_configuration_is_told_as_such(status: int) -> None:
    asked = route(httpx.Response(status))
    for _ in range(3):
        with pytest.raises(RouteUnavailable, match="check model name, token and address"):
            await asyncio.wait_for(asked.ask(QUESTION), 1)


async def test_a_date_that_no_clock_can_hold_is_no_wish_to_wait() -> None:
    date = "Mon, 99999999999999999999 Jan 2026 00:00:00 GMT"
    with pytest.raises(RouteUnavailable, match="HTTP 503"):
        await route(httpx.Response(503, headers={"retry-after": date})).ask(QUESTION)
