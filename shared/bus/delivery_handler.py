"""Gives one delivery its one answer: done, again later, or never again. The heart of the guarded loop.

Nothing is swallowed: an unexpected error counts as Transient, is logged with its traceback once a minute per kind, and
ends as a dead letter when it repeats. An answer that the bus does not confirm leads to another delivery, never to loss.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from shared.bus import metrics
from shared.bus.consumer import Consumer
from shared.bus.outage import OutageDetector
from shared.bus.port import Bus, Delivery
from shared.bus.topology import MAX_DELIVER
from shared.contracts.envelope import Envelope, parse
from shared.errors import ContractError, Fatal, Permanent, Transient
from shared.process.failpoints import failpoint
from shared.process.in_progress import InProgress

# The bus does the slow retries, adapters try at most twice, quickly. Longest pauses; the real ones are random shares.
BACKOFF_S: Final = (2.0, 10.0, 30.0, 120.0, 600.0)
ATTEMPTS: Final = len(BACKOFF_S) + 2  # some ten minutes of trying, longer than a restart of anything
QUIET_S: Final = 60.0  # one traceback per kind of error in this time

log = structlog.get_logger(__name__)


class DeliveryHandler:
    """Handles deliveries of one consumer; safe for many at once."""

    def __init__(self, bus: Bus, consumer: Consumer, outage: OutageDetector, rng: random.Random) -> None:
        self._bus, self._consumer, self._outage, self._rng = bus, consumer, outage, rng
        self._name = consumer.subscription.name
        metrics.begin(self._name)
        self._told: dict[str, float] = {}
        self._in_progress: InProgress[int] = InProgress()  # numbers of messages

    async def handle(self, delivery: Delivery) -> None:
        """Handle the delivery and answer it. Raises only Fatal and CancelledError, after giving the message back."""
        if delivery.attempt > 1:
            metrics.REDELIVERIES.labels(self._name).inc()
        if delivery.number in self._in_progress:
            # Our signs of life did not arrive, and the bus delivers again what is in work here. That work answers for
            # both when it ends; a message that is acknowledged before would be lost if it fails.
            metrics.DELIVERIES.labels(self._name, "in_work").inc()
            return
        try:
            outcome = await self._outcome(delivery)
        except (Fatal, asyncio.CancelledError):
            # Shielded, because the cancellation that brought us here may be repeated.
            await asyncio.shield(self.give_back(delivery))
            raise
        except Transient as error:  # the answer itself did not reach the bus
            log.warning("answer not confirmed", error=str(error), delivery=delivery.attempt)
            outcome = "unconfirmed"
        metrics.DELIVERIES.labels(self._name, outcome).inc()

    async def _outcome(self, delivery: Delivery) -> str:
        try:
            event = parse(delivery.raw)
            self._expected(event)
        except ContractError as error:
            return await self._dead(delivery, None, "contract", str(error))
        if delivery.attempt >= MAX_DELIVER - 1:
            reason = f"delivered {delivery.attempt} times without an answer: handling it seems to end the process"
            return await self._dead(delivery, event, "crashing", reason)
        with structlog.contextvars.bound_contextvars(**event_fields(event, delivery.attempt)):
            return await self._handled(delivery, event)

    async def _handled(self, delivery: Delivery, event: Envelope) -> str:
        try:
            metrics.AGE.labels(self._name).observe(max(0.0, (datetime.now(UTC) - event.time).total_seconds()))
            with metrics.HANDLE.labels(self._name).time():
                await self._work(delivery, event)
        except Permanent as error:
            return await self._dead(delivery, event, "permanent", str(error))
        except Fatal:
            raise
        except Exception as error:  # the one place that turns unknown errors into retries
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
        self._tell(error)
        # In an outage the event is not to blame: it waits for a moment, and nothing is fetched until the outage ends.
        away = isinstance(error, Transient) and await self._outage.check()
        if delivery.attempt >= ATTEMPTS and not away:
            reason = (
                f"given up after {delivery.attempt} deliveries, the last ended with {type(error).__name__}: {error}"
            )
            return await self._dead(delivery, event, "exhausted", reason[:500])
        longest = BACKOFF_S[0 if away else min(delivery.attempt, len(BACKOFF_S)) - 1]
        await delivery.nak(self._rng.uniform(0, longest))  # full jitter: replicas must not retry in step
        return "retried"

    async def _dead(self, delivery: Delivery, event: Envelope | None, cause: str, reason: str) -> str:
        if event is not None and not await self._recorded(event, reason) and delivery.attempt < MAX_DELIVER - 1:
            await delivery.nak(BACKOFF_S[0])
            return "retried"
        await delivery.reject(reason)
        metrics.DEAD.labels(self._name, cause).inc()
        log.error("dead letter", cause=cause, reason=reason, delivery=delivery.attempt, on=delivery.subject)
        return "dead"

    async def _recorded(self, event: Envelope, reason: str) -> bool:
        """Whether the service has recorded that this event is dead (or has nothing to record)."""
        if self._consumer.on_dead is None:
            return True
        try:
            await self._publish(await self._consumer.on_dead(event, reason))
        except Fatal:
            raise
        except Exception as error:
            self._tell(error)
            return False
        return True

    async def give_back(self, delivery: Delivery) -> None:
        """Return the message unhandled, so that nobody waits for the acknowledgement time."""
        try:
            await delivery.nak(0)
            metrics.DELIVERIES.labels(self._name, "given_back").inc()
        except Transient as error:  # it comes back by itself after the acknowledgement time
            log.warning("message not given back", error=str(error))

    def _expected(self, event: Envelope) -> None:
        wanted = self._consumer.subscription.events
        if not isinstance(event.data, wanted):
            names = ", ".join(kind.TYPE for kind in wanted)
            raise ContractError(f"event type {event.type} on a consumer of {names}")

    def _tell(self, error: Exception) -> None:
        if isinstance(error, Transient):
            log.warning("handling failed, will retry", error=str(error))
            return
        kind, now = f"{type(error).__name__}", time.monotonic()
        if now - self._told.get(kind, -QUIET_S) >= QUIET_S:
            self._told[kind] = now
            log.error("unexpected error, will retry", kind=kind, exc_info=error)


def event_fields(event: Envelope, delivery: int) -> dict[str, Any]:
    """The fields that every log line about an event carries."""
    fields: dict[str, Any] = {"run": event.runid, "epoch": event.epoch, "event_id": event.id[:16], "delivery": delivery}
    segment = getattr(event.data, "segment", None)
    return {**fields, "type": event.type} if segment is None else {**fields, "type": event.type, "segment": segment}
