"""The event bus as the services see it. Adapters: NATS JetStream and memory; one contract suite for both.

A bus may lose, repeat and reorder events; services survive all three, because the store is the truth.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from shared.contracts.envelope import Envelope
from shared.contracts.events import EventData
from shared.errors import Transient

Handler = Callable[[Envelope], Awaitable[Sequence[Envelope]]]
"""Does the work of one event and returns the events to publish. Raises Transient, Permanent or Fatal."""


class ConsumerMissing(Transient):
    """The durable consumer was deleted: fetching would stay silent for ever. `ensure` makes it again."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One durable consumer of a service: which events it takes and how.

    `name` is shared by all replicas, which compete for messages. `slots` bounds the events in work at once.
    `timeout_s` bounds one handler call; it may be long, because the loop keeps telling the bus that work goes on.
    """

    name: str
    events: tuple[type[EventData], ...]
    slots: int = 1
    timeout_s: float = 120.0


class Delivery(Protocol):
    """One received message. At most one of the three endings is called; without one it is delivered again."""

    raw: bytes
    subject: str
    number: int  # of the message, the same at each delivery
    attempt: int  # 1 for the first delivery

    async def ack(self) -> None:
        """Done: never deliver again. Returns after the bus has confirmed."""
        ...

    async def nak(self, delay_s: float) -> None:
        """Not done: deliver again after `delay_s`."""
        ...

    async def reject(self, reason: str) -> None:
        """Never deliver again; keep the message and the reason in the dead-letter stream."""
        ...

    async def in_progress(self) -> None:
        """Work goes on: restart the acknowledgement timer."""
        ...


class Bus(Protocol):
    """A connection to the bus."""

    @property
    def connected(self) -> bool:
        """Whether the bus can be reached now, as far as is known."""
        ...

    @property
    def closed(self) -> asyncio.Event:
        """Set when the connection is gone for good without having been closed by us."""
        ...

    async def publish(self, event: Envelope, *, replay_nonce: int = 0) -> None:
        """Store the event, retrying with the same id; raise Transient if the bus does not confirm in time.

        The bus drops an id that it has seen in the last ten minutes. A `ring` above 0 makes the event pass once more:
        only the reconciler rings again, when an event went missing (consumer deleted, stream purged).
        """
        ...

    async def fetch(self, subscription: Subscription, batch: int, timeout_s: float) -> Sequence[Delivery]:
        """Up to `batch` messages, waiting at most `timeout_s`; empty if there are none."""
        ...

    async def pending(self, subscription: Subscription) -> int:
        """Messages not yet acknowledged; raise ConsumerMissing, or Transient when the bus is away."""
        ...

    async def close(self) -> None:
        """Stop fetching, flush what is confirmed, close the connection."""
        ...

    async def ensure(self, subscription: Subscription) -> None:
        """Make sure that the consumer is there as declared; a missing one is made again and gets what is still kept.

        Raises Fatal when the stream is missing or differs from the topology, Transient when the bus is away.
        """
        ...


LONGEST_REASON: Final = 500  # characters: it travels as a header, for which a message has 1 KiB of room


def one_line(reason: str) -> str:
    """A reason as a dead letter carries it: a header takes no line breaks and nothing but ASCII."""
    return reason.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")[:LONGEST_REASON]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that no consumer could handle, kept with the reason until somebody replays or drops it."""

    number: int
    consumer: str
    subject: str
    reason: str
    attempt: int
    time: datetime
    raw: bytes


class DeadLetters(Protocol):
    """The dead-letter stream, for people."""

    async def list(self, limit: int = 100) -> Sequence[DeadLetter]:
        """The oldest `limit` dead letters, by number."""
        ...

    async def get(self, number: int) -> DeadLetter:
        """One dead letter, or Permanent if there is none of that number."""
        ...

    async def replay(self, number: int) -> None:
        """Publish the message again on its subject and drop the dead letter. Doing it twice delivers it once."""
        ...

    async def drop(self, number: int) -> None:
        """Remove the dead letter, or Permanent if there is none of that number."""
        ...
