"""A route learns how many choices its server accepts and how long its calls take; a hanging route is not a slow one."""

import asyncio
import json

import httpx
import pytest

from services.judge.telemetry import ROUTES
from shared.llm.limits.call_time import CallTime
from shared.llm.limits.choice_limit import ChoiceLimit
from shared.llm.port import CompletionRequest, RequestRefused, RouteTimeout, TooManyChoices
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec

REQUEST = CompletionRequest({"messages": []}, 3, 1, "demo")
LLAMA = "Field 'n': Value must be between 1 <= value <= 1, but got 3"


def route(server: httpx.MockTransport, **fields: float) -> RouteClient:
    spec = RouteSpec.model_validate({"url": "http://server.test/v1", "attempts": 1, **fields})
    opened = RouteClient("r", spec, ROUTES)
    opened.clients.transport = server
    return opened


def answer(request: httpx.Request, choices: int | None = None) -> httpx.Response:
    """A completion with as many choices as requested, or with this number."""
    choice = {"message": {"content": "a vote"}, "finish_reason": "stop"}
    return httpx.Response(200, json={"choices": [choice] * (choices or json.loads(request.content)["n"])})


@pytest.mark.parametrize(
    ("message", "most"),
    [
        (LLAMA, 1),
        ("Field 'n': Value must be between 1 <= value <= 2, but got 3", 2),
        ("n must be at most 1 for this model", 1),
        ("Only one completion choice is allowed: `n` > 1 is not supported", 1),
        ("[{'type': 'less_than_equal', 'loc': ('body', 'n'), 'msg': 'Input should be <= 2'}]", 2),
    ],
)
def test_a_refusal_of_n_gives_the_limit(message: str, most: int) -> None:
    limit = ChoiceLimit()
    assert limit.learn_from_refusal(3, message)
    assert limit.cap(3) == most
    assert not limit.confirmed
    assert limit.learn_from_answer(most, most), "reported once"
    assert not limit.learn_from_answer(most, most)


@pytest.mark.parametrize("message", ["the prompt exceeds n_ctx 4096", "unknown model", "context window too long", ""])
def test_another_refusal_sets_no_limit(message: str) -> None:
    limit = ChoiceLimit()
    assert not limit.learn_from_refusal(3, message)
    assert limit.cap(3) == 3


def test_a_limit_that_did_not_help_is_withdrawn() -> None:
    limit = ChoiceLimit()
    assert limit.learn_from_refusal(3, "n is wrong")
    assert not limit.learn_from_refusal(1, "n is wrong")
    assert limit.cap(3) == 3


def test_a_confirmed_limit_survives_another_refusal() -> None:
    limit = ChoiceLimit()
    limit.learn_from_refusal(3, LLAMA)
    limit.learn_from_answer(1, 1)
    assert not limit.learn_from_refusal(1, "the prompt is too long")
    assert limit.cap(3) == 1


def test_a_server_that_ignores_n_is_recognised() -> None:
    limit = ChoiceLimit()
    assert limit.learn_from_answer(3, 1)
    assert limit.cap(3) == 1
    assert not ChoiceLimit().learn_from_answer(3, 2), "two of three are a fault, not a limit"


async def test_a_route_splits_after_a_refusal_and_remembers() -> None:
    asked: list[int] = []

    def server(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content)["n"])
        return answer(request) if asked[-1] == 1 else httpx.Response(400, json={"error": {"message": LLAMA}})

    one = route(httpx.MockTransport(server))
    with pytest.raises(TooManyChoices, match="Field 'n'"):
        await one.complete(REQUEST)
    assert one.choices_per_request(3) == 1
    await one.complete(CompletionRequest({}, 1, 1, "demo"))
    assert one.choices.confirmed
    assert asked == [3, 1]


async def test_a_refusal_for_another_reason_is_final() -> None:
    one = route(httpx.MockTransport(lambda _: httpx.Response(400, json={"error": {"message": "context exceeded"}})))
    with pytest.raises(RequestRefused) as refused:
        await one.complete(REQUEST)
    assert not isinstance(refused.value, TooManyChoices)


def test_a_fast_route_keeps_its_time_limit() -> None:
    time = CallTime(60, 600)
    for seconds in (2.0, 3.0, 4.0):
        time.record_answer(seconds)
    assert time.limit_s == 60
    assert time.typical_s == 3.0
    assert not time.record_timeout(60), "it hangs: its answers took four seconds"
    assert time.limit_s == 60


def test_a_route_that_never_answered_gets_time_until_it_does() -> None:
    time, limits = CallTime(60, 600), list[float]()
    while time.record_timeout(time.limit_s):
        limits.append(time.limit_s)
    assert limits == [120, 240, 480, 600]
    assert time.limit_s == 60, "it is dead, not slow"
    assert not time.record_timeout(60)
    time.record_answer(100)
    assert time.limit_s == 400


def test_a_slow_route_gets_a_multiple_of_its_slowest_answer() -> None:
    time = CallTime(60, 900)
    time.record_answer(50)
    assert time.limit_s == 200
    assert time.record_timeout(200)
    assert time.limit_s == 400
    assert not time.record_timeout(400), "eight times its slowest answer is a hang"
    time.record_answer(300)
    assert time.limit_s == 900


def test_calls_that_time_out_together_raise_the_limit_once() -> None:
    time = CallTime(60, 600)
    assert time.record_timeout(60)
    assert not time.record_timeout(60)
    assert time.limit_s == 120


def test_old_calls_are_forgotten() -> None:
    time = CallTime(60, 600)
    time.record_answer(100)
    for _ in range(20):
        time.record_answer(1)
    assert time.limit_s == 60


async def test_a_slow_server_is_given_the_time_it_needs() -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.5)
        return answer(request)

    one = route(httpx.MockTransport(slow), total_timeout_s=0.2, longest_timeout_s=5)
    for limit in ("0.2", "0.4"):
        with pytest.raises(RouteTimeout, match=f"no answer within {limit} s"):
            await one.complete(REQUEST)
    assert one.seconds_since_response() == 0, "the route is slow, not silent"
    assert len((await one.complete(REQUEST)).choices) == 3
    assert one.call_limit_s == pytest.approx(2.0, rel=0.5)


async def test_a_call_waits_in_line_as_long_as_slow_calls_take() -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.4)
        return answer(request)

    one = route(httpx.MockTransport(slow), total_timeout_s=1, longest_timeout_s=9, wait_s=0.1, max_concurrent=1)
    one.call_time.record_answer(0.4)
    assert one.call_limit_s > 1
    answers = await asyncio.gather(*(one.complete(REQUEST) for _ in range(3)))
    assert len(answers) == 3


def test_the_line_of_a_slow_route_is_short() -> None:
    one = route(httpx.MockTransport(answer), max_concurrent=2)
    assert one.calls_within(60) == 4, "as long as its speed is unknown, one call waits for each that runs"
    one.call_time.record_answer(300)
    assert one.calls_within(60) == 2
    one.call_time.record_answer(0.1)
    one.call_time.record_answer(0.1)
    assert one.calls_within(60) > 1_000
