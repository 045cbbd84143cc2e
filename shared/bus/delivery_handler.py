"""Handles one delivery and answers it exactly once: acknowledge, retry later, or dead letter.

No error is swallowed. An unexpected one counts as Transient, is logged with its traceback once a minute per kind, and
becomes a dead letter when it repeats. An answer that the bus does not confirm causes another delivery, never a loss.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from shared.bus import metrics
from shared.bus.consumer import Consumer
from shared.bus.event_spans import end_with_outcome, process_span
from shared.bus.outage import OutageDetector
from shared.bus.port import Bus, Delivery
from shared.bus.topology import MAX_DELIVER
from shared.contracts.envelope import Envelope, parse
from shared.errors import ContractError, Fatal, Permanent, Transient
from shared.process.bounded_cache import BoundedCache
from shared.process.failpoints import failpoint
from shared.process.in_progress import InProgress
from shared.telemetry.tracing import trace_id

# The bus does the slow retries; adapters retry at most twice, quickly. Upper bounds: the actual pause is random.
BACKOFF_S: Final = (2.0, 10.0, 30.0, 120.0, 600.0)
ATTEMPTS: Final = len(BACKOFF_S) + 2  # about ten minutes of retries, longer than any restart
REMEMBERED: Final = 10_000  # messages whose failures are counted: ten times as many as a consumer has in work
QUIET_S: Final = 60.0  # one traceback per kind of error in this time

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Tries:
    """What this process knows of a message without an outcome: the newest delivery that it saw, and the failures.

    Deliveries to other processes between two of its own count as failures, so that replicas do not multiply the
    attempts. Those before its first one do not: they may have been given back by processes that stopped.
    """

    newest: int
    failures: int = 0


class DeliveryHandler:
    """Handles deliveries of one consumer; several may run concurrently."""

    def __init__(
        self,
        bus: Bus,
        consumer: Consumer,
        outage: OutageDetector,
        rng: random.Random,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`stopping` reports a shutdown: what fails then is given back, because the stop may be the reason."""
        self._bus, self._consumer, self._outage, self._rng, self._stopping = bus, consumer, outage, rng, stopping
        self._name = consumer.subscription.name
        metrics.initialise(self._name)
        self._last_logged: dict[str, float] = {}
        self._in_progress: InProgress[int] = InProgress()  # numbers of messages
        self._tries: BoundedCache[int, _Tries] = BoundedCache(REMEMBERED)  # by the number of the message

    async def handle(self, delivery: Delivery) -> None:
        """Handle the delivery and answer it. Raises only Fatal and CancelledError, after the message was given back."""
        if delivery.attempt > 1:
            metrics.REDELIVERIES.labels(self._name).inc()
        self._note_delivery(delivery)
        if delivery.number in self._in_progress:
            # The bus missed the progress signals and delivers the message again. The running work answers for both: an
            # acknowledgement now would lose the message if that work fails.
            metrics.DELIVERIES.labels(self._name, "in_work").inc()
            return
        try:
            outcome = await self._handle_raw(delivery)
        except (Fatal, asyncio.CancelledError):
            # Shielded: the cancellation may come again.
            await asyncio.shield(self.give_back(delivery))
            raise
        except Transient as error:  # of the answer itself: it did not reach the bus
            log.warning("answer not confirmed", error=str(error), delivery=delivery.attempt)
            outcome = "unconfirmed"
        if outcome in ("done", "dead"):
            self._tries.pop(delivery.number)
        metrics.DELIVERIES.labels(self._name, outcome).inc()

    def _note_delivery(self, delivery: Delivery) -> None:
        tries = self._tries.get(delivery.number)
        if tries is None or delivery.attempt <= tries.newest:  # of a stream that was made again, and counts from 1
            self._tries.put(delivery.number, _Tries(delivery.attempt))
            return
        tries.failures += delivery.attempt - tries.newest - 1
        tries.newest = delivery.attempt

    async def _handle_raw(self, delivery: Delivery) -> str:
        try:
            event = parse(delivery.raw)
            self._check_type(event)
        except ContractError as error:
            return await self._dead(delivery, None, "contract", str(error))
        if delivery.attempt >= MAX_DELIVER - 1:
            reason = f"delivered {delivery.attempt} times without an outcome: its handling probably crashes the process"
            return await self._dead(delivery, event, "crashing", reason)
        with process_span(event, self._name, delivery.attempt) as current:
            with structlog.contextvars.bound_contextvars(**event_fields(event, delivery.attempt, trace_id(current))):
                outcome = await self._handle_event(delivery, event)
            end_with_outcome(current, outcome)
        return outcome

    async def _handle_event(self, delivery: Delivery, event: Envelope) -> str:
        try:
            metrics.AGE.labels(self._name).observe(max(0.0, (datetime.now(UTC) - event.time).total_seconds()))
            with metrics.HANDLE.labels(self._name).time():
                await self._work(delivery, event)
        except Permanent as error:
            return await self._dead(delivery, event, "permanent", str(error))
        except Fatal:
            raise
        except Exception as error:  # the only place that turns unknown errors into retries
            return await self._retry(delivery, event, error)
        failpoint(f"{self._name.partition('-')[0]}.before_ack")
        with metrics.ACK.labels(self._name).time():
            await delivery.ack()
        return "done"

    async def _work(self, delivery: Delivery, event: Envelope) -> None:
        limit = self._consumer.subscription.timeout_s
        with self._in_progress.claim(delivery.number):
            try:
                async with asyncio.timeout(limit) as timer:
                    await self._publish(await self._consumer.handler(event))
            except TimeoutError as error:
                if timer.expired():
                    raise Transient(f"handling took longer than {limit:g} s") from error
                raise

    async def _publish(self, events: Sequence[Envelope]) -> None:
        for event in events:
            await self._bus.publish(event)

    async def _retry(self, delivery: Delivery, event: Envelope, error: Exception) -> str:
        self._log_retry(error)
        if self._stopping():  # else an event that is held for hours would become a dead letter by a few restarts
            await delivery.nak(0)
            return "given_back"
        # An outage is not the event's fault: it waits shortly, and the loop fetches nothing until the outage ends.
        away = isinstance(error, Transient) and await self._outage.check()
        failures = 0 if away else self._count_failure(delivery)
        if failures >= ATTEMPTS:
            reason = f"given up after {failures} failures; last error: {type(error).__name__}: {error}"
            return await self._dead(delivery, event, "exhausted", reason[:500])
        longest = BACKOFF_S[max(0, min(failures, len(BACKOFF_S)) - 1)]
        await delivery.nak(self._rng.uniform(0, longest))  # full jitter: replicas must not retry in lockstep
        return "retried"

    def _count_failure(self, delivery: Delivery) -> int:
        """Add a failure; return how many the message has."""
        tries = self._tries.get_or_make(delivery.number, lambda: _Tries(delivery.attempt))
        tries.failures += 1
        return tries.failures

    async def _dead(self, delivery: Delivery, event: Envelope | None, cause: str, reason: str) -> str:
        if event is not None and not await self._record_dead(event, reason) and delivery.attempt < MAX_DELIVER - 1:
            await delivery.nak(BACKOFF_S[0])
            return "retried"
        await delivery.reject(reason)
        metrics.DEAD.labels(self._name, cause).inc()
        log.error(
            "event dead-lettered", cause=cause, reason=reason, delivery=delivery.attempt, subject=delivery.subject
        )
        return "dead"

    async def _record_dead(self, event: Envelope, reason: str) -> bool:
        """Let the service record that this event is dead; return False if that failed."""
        if self._consumer.on_dead is None:
            return True
        try:
            await self._publish(await self._consumer.on_dead(event, reason))
        except Fatal:
            raise
        except Exception as error:
            self._log_retry(error)
            return False
        return True

    async def give_back(self, delivery: Delivery) -> None:
        """Return the message unhandled: the bus redelivers it without waiting for the acknowledgement timeout."""
        try:
            await delivery.nak(0)
            metrics.DELIVERIES.labels(self._name, "given_back").inc()
        except Transient as error:  # the bus redelivers it after the acknowledgement timeout
            log.warning("message not given back", error=str(error))

    def _check_type(self, event: Envelope) -> None:
        wanted = self._consumer.subscription.events
        if not isinstance(event.data, wanted):
            names = ", ".join(kind.TYPE for kind in wanted)
            raise ContractError(f"event type {event.type} does not belong on a consumer of {names}")

    def _log_retry(self, error: Exception) -> None:
        if isinstance(error, Transient):
            log.warning("handling failed", error=str(error))
            return
        kind, now = f"{type(error).__name__}", time.monotonic()
        if now - self._last_logged.get(kind, -QUIET_S) >= QUIET_S:
            self._last_logged[kind] = now
            log.error("handling failed unexpectedly", kind=kind, exc_info=error)


def event_fields(event: Envelope, delivery: int, trace: str | None) -> dict[str, Any]:
    """The fields of every log line about an event."""
    fields: dict[str, Any] = {"run": event.runid, "epoch": event.epoch, "event_id": event.id[:16], "delivery": delivery}
    optional = {"segment": getattr(event.data, "segment", None), "trace_id": trace}
    return {**fields, "type": event.type, **{name: value for name, value in optional.items() if value is not None}}
