"""Each delivery gets exactly one answer: pauses between attempts, and when an event becomes a dead letter."""

import random
from collections.abc import Sequence

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from shared.bus.consumer import Consumer
from shared.bus.delivery_handler import ATTEMPTS, BACKOFF_S, DeliveryHandler
from shared.bus.memory import MemoryBus
from shared.bus.metrics import CAUSES
from shared.bus.outage import OutageDetector
from shared.bus.topology import JUDGE_SEGMENTS, MAX_DELIVER
from shared.contracts.envelope import Envelope
from shared.errors import Fatal, Permanent, Transient
from tests.events import segment_ready


class Noted:
    """A delivery that notes how it was answered."""

    def __init__(self, attempt: int) -> None:
        self.raw, self.subject = segment_ready().to_bytes(), "zelda.v1.demo.segment.ready"
        self.number, self.attempt = 1, attempt
        self.answers: list[str | float] = []

    async def ack(self) -> None:
        self.answers.append("done")

    async def nak(self, delay_s: float) -> None:
        self.answers.append(delay_s)

    async def reject(self, reason: str) -> None:
        self.answers.append(f"dead: {reason}")

    async def in_progress(self) -> None:
        raise AssertionError("no test waits this long")


class Longest(random.Random):
    """A random generator that always returns the longest pause."""

    def uniform(self, a: float, b: float) -> float:
        return b


async def answered(
    attempt: int,
    *errors: Exception,
    away: bool = False,
    dead_error: Exception | None = None,
    rng: random.Random | None = None,
    stopping: bool = False,
) -> list[str | float]:
    """The answers to one delivery whose handling fails so; the store may be away, and recording the dead fail."""
    failures = iter(errors)

    async def handler(event: Envelope) -> Sequence[Envelope]:
        for failure in failures:
            raise failure
        return []

    async def on_dead(event: Envelope, reason: str) -> Sequence[Envelope]:
        if dead_error is not None:
            raise dead_error
        return []

    async def here() -> bool:
        return not away

    delivery = Noted(attempt)
    consumer = Consumer(JUDGE_SEGMENTS, handler, on_dead)
    outage = OutageDetector(here)
    await DeliveryHandler(MemoryBus(), consumer, outage, rng or Longest(), lambda: stopping).handle(delivery)
    return delivery.answers


async def test_handled_event_is_acknowledged() -> None:
    assert await answered(1) == ["done"]


async def test_pause_grows_with_each_failure_until_the_attempts_end() -> None:
    pauses = [(await answered(attempt, Transient("busy")))[0] for attempt in range(1, ATTEMPTS)]
    assert pauses == [*BACKOFF_S, BACKOFF_S[-1]]
    assert await answered(ATTEMPTS, Transient("busy")) == [
        f"dead: given up after {ATTEMPTS} deliveries; last error: Transient: busy"
    ]


async def test_replicas_retry_at_different_times() -> None:
    rng = random.Random(1)
    pauses = [float((await answered(3, Transient("busy"), rng=rng))[0]) for _ in range(50)]
    assert 0 <= min(pauses) < BACKOFF_S[2] / 10
    assert BACKOFF_S[2] * 9 / 10 < max(pauses) <= BACKOFF_S[2]


async def test_outage_costs_no_attempt_and_is_checked_soon() -> None:
    assert await answered(ATTEMPTS + 5, Transient("no store"), away=True) == [BACKOFF_S[0]]
    (dead,) = await answered(ATTEMPTS + 5, ValueError("a bug"), away=True)
    assert str(dead).startswith("dead: "), "an error of our own is no outage"


@pytest.mark.parametrize("attempt", [1, ATTEMPTS, MAX_DELIVER - 2])
async def test_work_that_a_stop_ends_is_given_back_immediately(attempt: int) -> None:
    assert await answered(attempt, Transient("the service is stopping"), stopping=True) == [0]
    (dead,) = await answered(attempt, Permanent("no manifest"), stopping=True)
    assert dead == "dead: no manifest", "another process would fail alike"


async def test_timeout_inside_a_handler_is_not_the_loops_timeout() -> None:
    (dead,) = await answered(ATTEMPTS, TimeoutError("the judge was silent"))
    assert dead == f"dead: given up after {ATTEMPTS} deliveries; last error: TimeoutError: the judge was silent"


async def test_unrecordable_dead_event_is_retried_up_to_max_deliver() -> None:
    away = Transient("the store is away")
    for attempt in (1, MAX_DELIVER - 2):
        assert await answered(attempt, Permanent("no manifest"), dead_error=away) == [BACKOFF_S[0]]
    (dead,) = await answered(MAX_DELIVER - 1, dead_error=away)
    assert str(dead).startswith(f"dead: delivered {MAX_DELIVER - 1} times without an answer")


async def test_fatal_error_in_on_dead_ends_the_loop_and_gives_the_message_back() -> None:
    with pytest.raises(Fatal, match="the key was withdrawn"):
        await answered(1, Permanent("no manifest"), dead_error=Fatal("the key was withdrawn"))


async def test_repeated_error_logs_one_traceback() -> None:
    async def handler(event: Envelope) -> Sequence[Envelope]:
        raise ValueError("a bug")

    answer = DeliveryHandler(MemoryBus(), Consumer(JUDGE_SEGMENTS, handler), OutageDetector(), Longest())
    with capture_logs() as lines:
        for _ in range(3):
            await answer.handle(Noted(1))
    assert [line["event"] for line in lines] == ["handling failed unexpectedly"]


async def test_an_outage_is_logged_without_a_traceback() -> None:
    with capture_logs() as lines:
        await answered(1, Transient("the store is away"), away=True)
    assert [(line["event"], line["error"]) for line in lines] == [("handling failed", "the store is away")]


async def test_fatal_error_while_the_bus_is_away_is_still_the_reason_of_the_end() -> None:
    class Unreachable(Noted):
        async def nak(self, delay_s: float) -> None:
            raise Transient("bus: not connected")

    async def handler(event: Envelope) -> Sequence[Envelope]:
        raise Fatal("the key was withdrawn")

    answer = DeliveryHandler(MemoryBus(), Consumer(JUDGE_SEGMENTS, handler), OutageDetector(), Longest())
    with pytest.raises(Fatal, match="the key was withdrawn"):
        await answer.handle(Unreachable(1))


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"zelda_bus_{name}_total", {"consumer": JUDGE_SEGMENTS.name, **labels}) or 0.0


@pytest.mark.parametrize(
    ("attempt", "errors", "outcome", "cause"),
    [
        (1, (), "done", None),
        (1, (Transient("busy"),), "retried", None),
        (1, (Permanent("no manifest"),), "dead", "permanent"),
        (ATTEMPTS, (Transient("busy"),), "dead", "exhausted"),
        (MAX_DELIVER - 1, (), "dead", "crashing"),
    ],
)
async def test_each_delivery_is_counted_by_its_outcome(
    attempt: int, errors: tuple[Exception, ...], outcome: str, cause: str | None
) -> None:
    def counts() -> list[float]:
        dead = sum(counted("dead_letters", cause=one) for one in CAUSES)
        causes = 0.0 if cause is None else counted("dead_letters", cause=cause)
        return [counted("deliveries", outcome=outcome), counted("redeliveries"), dead, causes]

    before = counts()
    await answered(attempt, *errors)
    died = float(cause is not None)
    grown = [now - then for now, then in zip(counts(), before, strict=True)]
    assert grown == [1.0, float(attempt > 1), died, died]


async def test_a_second_delivery_is_counted_as_a_redelivery() -> None:
    before = counted("redeliveries")
    await answered(1)
    await answered(2)
    assert counted("redeliveries") - before == 1
