"""The bus in memory, for tests, simulations and single-process tools, with the guarantees of the real one.

Events are delivered at least once, redelivered after `ACK_WAIT_S` without an answer, and lost by `purge`.
Never for production: the events end with the process.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from shared.bus.event_spans import publish_span
from shared.bus.port import ConsumerMissing, DeadLetter, Subscription, UnknownDeadLetter, one_line
from shared.bus.subjects import subject
from shared.bus.topology import ACK_WAIT_S, DUPLICATE_WINDOW_S, MAX_DELIVER, ROLES
from shared.contracts.envelope import Envelope
from shared.errors import Transient
from shared.process.event_wait import wait_for_event


@dataclass(slots=True)
class _Message:
    raw: bytes
    subject: str
    due: float = 0.0
    attempt: int = 0


@dataclass(slots=True)
class _Queue:
    """Messages of one durable consumer, oldest first, until acknowledged."""

    subscription: Subscription
    messages: dict[int, _Message] = field(default_factory=dict)

    def offer(self, number: int, raw: bytes, on: str) -> None:
        """Enqueue a message if this consumer subscribes to its kind."""
        if any(on.endswith(f".{event.NAME}") for event in self.subscription.events):
            self.messages[number] = _Message(raw, on)


class MemoryBus:
    """All consumers of the topology exist from the start, as after provisioning. `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._queues = {s.name: _Queue(s) for role in ROLES.values() for s in role.subscriptions}
        self._seen: dict[str, float] = {}
        self._numbers = 0
        self._arrival = asyncio.Event()
        self._dead: dict[int, DeadLetter] = {}
        self.connected = True
        self.closed = asyncio.Event()

    async def publish(self, event: Envelope, *, replay_nonce: int = 0) -> None:
        """Hand the event to every subscribed consumer, unless its id was seen within the duplicate window."""
        self._require_connection()
        key = event.id if replay_nonce == 0 else f"{event.id}.{replay_nonce}"
        with publish_span(event) as traced:
            if self._record_id(key):
                self._store(traced.to_bytes(), subject(event.data))

    def inject(self, raw: bytes, on: str) -> None:
        """Put any bytes on any subject, as a faulty or hostile publisher could."""
        self._store(raw, on)

    async def fetch(self, subscription: Subscription, batch: int, timeout_s: float) -> Sequence["MemoryDelivery"]:
        """Messages that are due; waits in real time for the first one."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._require_connection()
            found = self._due(subscription, batch)
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            self._arrival.clear()
            await wait_for_event(self._arrival, min(left, 0.05))  # a redelivery becomes due without a notification

    async def pending(self, subscription: Subscription) -> int:
        """Messages not yet acknowledged."""
        self._require_connection()
        return len(self._queue(subscription).messages)

    async def ensure(self, subscription: Subscription) -> None:
        """Create a missing consumer; it receives what other consumers still hold, as on the real server."""
        self._require_connection()
        if subscription.name in self._queues:
            return
        made = _Queue(subscription)
        kept = {number: message for queue in self._queues.values() for number, message in queue.messages.items()}
        for number, message in sorted(kept.items()):
            made.offer(number, message.raw, message.subject)
        self._queues[subscription.name] = made

    async def close(self) -> None:
        """Nothing to flush; the same object may serve the next service."""

    def purge(self) -> None:
        """Lose every event, as an operator could. Seen ids stay, as on the real server: only a new nonce passes."""
        for queue in self._queues.values():
            queue.messages.clear()

    def delete_consumer(self, name: str) -> None:
        """Lose a consumer, as an operator could; without effect if it is lost already."""
        self._queues.pop(name, None)

    @property
    def dead(self) -> "MemoryDeadLetters":
        """The dead letters."""
        return MemoryDeadLetters(self, self._dead)

    def _require_connection(self) -> None:
        if not self.connected:
            raise Transient("bus: not connected")

    def _record_id(self, key: str) -> bool:
        """Record this id; return whether it was not seen within the duplicate window."""
        now = self._clock()
        self._seen = {seen: at for seen, at in self._seen.items() if now - at < DUPLICATE_WINDOW_S}
        new = key not in self._seen
        self._seen.setdefault(key, now)
        return new

    def _add_dead_letter(self, consumer: str, one: "MemoryDelivery", reason: str) -> None:
        self._numbers += 1
        number, now = self._numbers, datetime.now(UTC)
        self._dead[number] = DeadLetter(number, consumer, one.subject, reason, one.attempt, now, one.raw)

    def _store(self, raw: bytes, on: str) -> None:
        self._numbers += 1
        for queue in self._queues.values():
            queue.offer(self._numbers, raw, on)
        self._arrival.set()

    def _queue(self, subscription: Subscription) -> _Queue:
        if subscription.name not in self._queues:
            raise ConsumerMissing(f"bus: consumer {subscription.name!r} is missing")
        return self._queues[subscription.name]

    def _due(self, subscription: Subscription, batch: int) -> list["MemoryDelivery"]:
        queue, now = self._queue(subscription), self._clock()
        due = [n for n, m in queue.messages.items() if m.due <= now and m.attempt < MAX_DELIVER][:batch]
        return [self._deliver(queue, number, now) for number in due]

    def _deliver(self, queue: _Queue, number: int, now: float) -> "MemoryDelivery":
        message = queue.messages[number]
        message.attempt += 1
        message.due = now + ACK_WAIT_S
        return MemoryDelivery(self, queue, number, message)


class MemoryDelivery:
    """One delivered message."""

    def __init__(self, bus: MemoryBus, queue: _Queue, number: int, message: _Message) -> None:
        self._bus, self._queue, self._message = bus, queue, message
        self.raw, self.subject, self.number, self.attempt = message.raw, message.subject, number, message.attempt

    async def ack(self) -> None:
        """Done."""
        self._require_consumer()
        self._queue.messages.pop(self.number, None)

    async def nak(self, delay_s: float) -> None:
        """Again after `delay_s`."""
        self._require_consumer()
        self._message.due = self._bus._clock() + delay_s
        self._bus._arrival.set()

    async def reject(self, reason: str) -> None:
        """Move to the dead letters. The bus remembers the id: a second rejection adds nothing."""
        await self.ack()
        consumer = self._queue.subscription.name
        if self._bus._record_id(f"dead.{consumer}.{self.number}"):
            self._bus._add_dead_letter(consumer, self, one_line(reason))

    async def in_progress(self) -> None:
        """Restart the timer."""
        self._require_consumer()
        self._message.due = self._bus._clock() + ACK_WAIT_S

    def _require_consumer(self) -> None:
        """No answer is confirmed while the bus is away or after the consumer was deleted."""
        self._bus._require_connection()
        self._bus._queue(self._queue.subscription)


class MemoryDeadLetters:
    """The dead letters of a memory bus."""

    def __init__(self, bus: MemoryBus, letters: dict[int, DeadLetter]) -> None:
        self._bus, self._letters = bus, letters

    async def list(self, limit: int = 100, *, after: int = 0, consumer: str | None = None) -> Sequence[DeadLetter]:
        """The oldest first."""
        self._bus._require_connection()
        letters = (self._letters[number] for number in sorted(self._letters) if number > after)
        return [letter for letter in letters if consumer in (None, letter.consumer)][:limit]

    async def get(self, number: int) -> DeadLetter:
        """One dead letter."""
        self._bus._require_connection()
        if number not in self._letters:
            raise UnknownDeadLetter(number)
        return self._letters[number]

    async def replay(self, number: int) -> None:
        """Publish again and drop."""
        letter = await self.get(number)
        self._bus._store(letter.raw, letter.subject)
        del self._letters[number]

    async def drop(self, number: int) -> None:
        """Remove."""
        await self.get(number)
        del self._letters[number]
