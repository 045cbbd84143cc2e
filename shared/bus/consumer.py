"""A consumer: a subscription with the handler of its events."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from shared.bus.port import Handler, Subscription
from shared.contracts.envelope import Envelope


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Consumer:
    """A subscription and what to do with its events.

    `on_dead` receives the event and the reason before it becomes a dead letter; it may record the outcome and return
    events to publish. While `active()` is false nothing is fetched (a coordinator without the lease). `room()` bounds
    the events in work below the subscription's slots, for work whose capacity changes.
    """

    subscription: Subscription
    handler: Handler
    on_dead: Callable[[Envelope, str], Awaitable[Sequence[Envelope]]] | None = None
    active: Callable[[], bool] = _always
    room: Callable[[], int] | None = None

    @property
    def slots(self) -> int:
        """Number of events that may be in work now; at least one, or nothing would ever change."""
        most = self.subscription.slots
        return most if self.room is None else max(1, min(most, self.room()))
