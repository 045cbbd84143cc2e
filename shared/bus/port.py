"""The event bus as the services see it. Adapters: NATS JetStream and memory; one contract suite for both.

A bus may lose, repeat and reorder events; services survive all three, because the store is the truth.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from shared.contracts.envelope import Envelope
from shared.contracts.events import EventData

Handler = Callable[[Envelope], Awaitable[Sequence[Envelope]]]
"""Does the work of one event and returns the events to publish. Raises Transient, Permanent or Fatal."""


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
    """One received message. Exactly one of the three endings is called."""

    raw: bytes
    subject: str
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

    async def publish(self, event: Envelope) -> None:
        """Store the event, retrying with the same id; raise Transient if the bus does not confirm in time."""
        ...

    async def fetch(self, subscription: Subscription, batch: int, timeout_s: float) -> Sequence[Delivery]:
        """Up to `batch` messages, waiting at most `timeout_s`; empty if there are none."""
        ...

    async def pending(self, subscription: Subscription) -> int:
        """Messages not yet acknowledged; raise Transient when the consumer is missing or the bus is away."""
        ...

    async def close(self) -> None:
        """Stop fetching, flush what is confirmed, close the connection."""
        ...
