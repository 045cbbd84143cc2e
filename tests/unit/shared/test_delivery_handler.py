"""Each delivery gets exactly one answer: pauses between attempts, and when an event becomes a dead letter."""

import itertools
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


class Process:
    """The handler of one process, whose store may be away, and which may stop or fail to record what is dead."""

    def __init__(self, dead_error: Exception | None = None, rng: random.Random | None = None) -> None:
        self._dead_error, self._failures = dead_error, iter(list[Exception]())
        self.away, self.stopping = False, False
        outage = OutageDetector(self._here, clock=itertools.count(0, 60).__next__)
        consumer = Consumer(JUDGE_SEGMENTS, self._handle, self._on_dead)
        self._handler = DeliveryHandler(MemoryBus(), consumer, outage, rng or Longest(), lambda: self.stopping)

    async def deliver(self, attempt: int, *errors: Exception) -> list[str | float]:
        """The answers to one delivery whose handling fails so."""
        self._failures = iter(errors)
        delivery = Noted(attempt)
        await self._handler.handle(delivery)
        return delivery.answers

    async def _handle(self, event: Envelope) -> Sequence[Envelope]:
        for failure in self._failures:
            raise failure
        return []

    async def _on_dead(self, event: Envelope, reason: str) -> Sequence[Envelope]:
        if self._dead_error is not None:
            raise self._dead_error
        return []

    async def _here(self) -> bool:
        return not self.away


async def answered(
    attempt: int,
    *errors: Exception,
    failed: int = 0,
    away: bool = False,
    dead_error: Exception | None = None,
    rng: random.Random | None = None,
    stopping: bool = False,
) -> list[str | float]:
    """The answers to one delivery whose handling fails so, after `failed` others that failed in the same process."""
    process = Process(dead_error, rng)
    for earlier in range(attempt - failed, attempt):
        await process.deliver(earlier, Transient("busy"))
    process.away, process.stopping = away, stopping
    return await process.deliver(attempt, *errors)


async def test_handled_event_is_acknowledged() -> None:
    assert await answered(1) == ["done"]


async def test_pause_grows_with_each_failure_until_the_attempts_end() -> None:
    pauses = [(await answered(attempt, Transient("busy"), failed=attempt - 1))[0] for attempt in range(1, ATTEMPTS)]
    assert pauses == [*BACKOFF_S, BACKOFF_S[-1]]
    assert await answered(ATTEMPTS, Transient("busy"), failed=ATTEMPTS - 1) == [
        f"dead: given up after {ATTEMPTS} failures; last error: Transient: busy"
    ]


@pytest.mark.parametrize("attempt", [2, ATTEMPTS, MAX_DELIVER - 2])
async def test_deliveries_to_processes_that_ended_are_no_failures(attempt: int) -> None:
    assert await answered(attempt, Transient("busy")) == [BACKOFF_S[0]]


@pytest.mark.parametrize("excused", ["away", "stopping"])
async def test_after_an_outage_or_a_stop_an_event_keeps_its_attempts(excused: str) -> None:
    process = Process()
    setattr(process, excused, True)
    for attempt in range(1, ATTEMPTS + 2):
        await process.deliver(attempt, Transient("no store"))
    setattr(process, excused, False)
    assert await process.deliver(ATTEMPTS + 2, Transient("busy")) == [BACKOFF_S[0]]


async def test_failures_of_other_replicas_count() -> None:
    process = Process()
    for attempt in range(1, ATTEMPTS, 2):  # another replica gets every second delivery
        assert await process.deliver(attempt, Transient("busy")) == [BACKOFF_S[min(attempt, len(BACKOFF_S)) - 1]]
    (dead,) = await process.deliver(ATTEMPTS, Transient("busy"))
    assert dead == f"dead: given up after {ATTEMPTS} failures; last error: Transient: busy"


async def test_a_stream_made_again_numbers_other_messages() -> None:
    process = Process()
    for attempt in range(1, ATTEMPTS):
        await process.deliver(attempt, Transient("busy"))
    assert await process.deliver(1, Transient("busy")) == [BACKOFF_S[0]]


async def test_replicas_retry_at_different_times() -> None:
    rng = random.Random(1)
    pauses = [float((await answered(3, Transient("busy"), failed=2, rng=rng))[0]) for _ in range(50)]
    assert 0 <= min(pauses) < BACKOFF_S[2] / 10
    assert BACKOFF_S[2] * 9 / 10 < max(pauses) <= BACKOFF_S[2]


async def test_outage_costs_no_attempt_and_is_checked_soon() -> None:
    failed = ATTEMPTS - 1
    assert await answered(ATTEMPTS + 5, Transient("no store"), failed=failed, away=True) == [BACKOFF_S[0]]
    (dead,) = await answered(ATTEMPTS + 5, ValueError("a bug"), failed=failed, away=True)
    assert str(dead).startswith("dead: "), "an error of our own is no outage"


@pytest.mark.parametrize("attempt", [1, ATTEMPTS, MAX_DELIVER - 2])
async def test_work_that_a_stop_ends_is_given_back_immediately(attempt: int) -> None:
    failed = min(attempt, ATTEMPTS) - 1
    assert await answered(attempt, Transient("the service is stopping"), failed=failed, stopping=True) == [0]
    (dead,) = await answered(attempt, Permanent("no manifest"), stopping=True)
    assert dead == "dead: no manifest", "another process would fail alike"


async def test_timeout_inside_a_handler_is_not_the_loops_timeout() -> None:
    (dead,) = await answered(ATTEMPTS, TimeoutError("the judge was silent"), failed=ATTEMPTS - 1)
    assert dead == f"dead: given up after {ATTEMPTS} failures; last error: TimeoutError: the judge was silent"


async def test_unrecordable_dead_event_is_retried_up_to_max_deliver() -> None:
    away = Transient("the store is away")
    for attempt in (1, MAX_DELIVER - 2):
        assert await answered(attempt, Permanent("no manifest"), dead_error=away) == [BACKOFF_S[0]]
    (dead,) = await answered(MAX_DELIVER - 1, dead_error=away)
    assert str(dead).startswith(f"dead: delivered {MAX_DELIVER - 1} times without an outcome")


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

    process = Process()
    for earlier in range(1, attempt if cause == "exhausted" else 1):
        await process.deliver(earlier, Transient("busy"))
    before = counts()
    await process.deliver(attempt, *errors)
    died = float(cause is not None)
    grown = [now - then for now, then in zip(counts(), before, strict=True)]
    assert grown == [1.0, float(attempt > 1), died, died]


async def test_a_second_delivery_is_counted_as_a_redelivery() -> None:
    before = counted("redeliveries")
    await answered(1)
    await answered(2)
    assert counted("redeliveries") - before == 1
