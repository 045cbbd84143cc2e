"""The event bus as services see it. Adapters: NATS JetStream and memory; one contract suite tests both.

A bus may lose, repeat and reorder events; services survive all three, because the store is the truth.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from shared.contracts.envelope import Envelope
from shared.contracts.events import EventData
from shared.errors import Permanent, Transient

Handler = Callable[[Envelope], Awaitable[Sequence[Envelope]]]
"""Handles one event and returns the events to publish. Raises Transient, Permanent or Fatal."""


class ConsumerMissing(Transient):
    """The durable consumer was deleted: a fetch would never return a message. `ensure` recreates it."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One durable consumer of a service: which events it receives and how.

    All replicas share `name` and compete for messages. `slots` bounds the events handled concurrently. `timeout_s`
    bounds one handler call; it may be long, because the loop signals progress to the bus.
    """

    name: str
    events: tuple[type[EventData], ...]
    slots: int = 1
    timeout_s: float = 120.0


class Delivery(Protocol):
    """One received message. At most one of `ack`, `nak` and `reject` is called; without one it is redelivered."""

    raw: bytes
    subject: str
    number: int  # of the message, the same at each delivery
    attempt: int  # 1 for the first delivery

    async def ack(self) -> None:
        """Done: never redeliver. Returns after the bus has confirmed."""
        ...

    async def nak(self, delay_s: float) -> None:
        """Not done: redeliver after `delay_s`."""
        ...

    async def reject(self, reason: str) -> None:
        """Never redeliver; keep the message and the reason in the dead-letter stream."""
        ...

    async def in_progress(self) -> None:
        """Signal progress: restart the acknowledgement timer."""
        ...


class Bus(Protocol):
    """A connection to the bus."""

    @property
    def connected(self) -> bool:
        """Whether the connection is up, as far as the client knows."""
        ...

    @property
    def closed(self) -> asyncio.Event:
        """Set when the client gave up the connection without a call of `close`."""
        ...

    async def publish(self, event: Envelope, *, replay_nonce: int = 0) -> None:
        """Store the event, retrying with the same id; raise Transient if the bus does not confirm in time.

        The bus drops an id that it has seen in the last ten minutes. A new `replay_nonce` above 0 lets the event pass
        once more: only the reconciler republishes lost events (consumer deleted, stream purged).
        """
        ...

    async def fetch(self, subscription: Subscription, batch: int, timeout_s: float) -> Sequence[Delivery]:
        """Return up to `batch` messages; wait at most `timeout_s` for the first, then return an empty list."""
        ...

    async def pending(self, subscription: Subscription) -> int:
        """Messages not yet acknowledged; raise ConsumerMissing, or Transient when the bus is away."""
        ...

    async def close(self) -> None:
        """Stop fetching, flush what is confirmed, close the connection."""
        ...

    async def ensure(self, subscription: Subscription) -> None:
        """Check that the consumer exists as declared; recreate a missing one, which receives the events still kept.

        Raises Fatal when the stream is missing or differs from the topology, Transient when the bus is away.
        """
        ...


MAX_REASON_LENGTH: Final = 500  # characters: a message has 1 KiB for headers


def one_line(reason: str) -> str:
    """A reason as header value: ASCII without line breaks."""
    return reason.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")[:MAX_REASON_LENGTH]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that no consumer could handle, kept with its reason until an operator replays or drops it."""

    number: int
    consumer: str
    subject: str
    reason: str
    attempt: int
    time: datetime
    raw: bytes


class UnknownDeadLetter(Permanent):
    """No dead letter has this number: it was replayed or dropped, or never existed."""

    def __init__(self, number: int) -> None:
        super().__init__(f"no dead letter {number}: `zelda dlq list` shows the numbers")


class DeadLetters(Protocol):
    """The dead-letter stream, for operators."""

    async def list(self, limit: int = 100, *, after: int = 0, consumer: str | None = None) -> Sequence[DeadLetter]:
        """The oldest `limit` dead letters, by number: those with a number above `after`, of one consumer or of all."""
        ...

    async def get(self, number: int) -> DeadLetter:
        """Return one dead letter, or raise UnknownDeadLetter."""
        ...

    async def replay(self, number: int) -> None:
        """Republish the message on its subject and drop the dead letter. A second call delivers nothing."""
        ...

    async def drop(self, number: int) -> None:
        """Remove the dead letter, or raise UnknownDeadLetter."""
        ...
