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

    `on_dead` is called before an event becomes a dead letter, with the reason; it may record the outcome and return
    events to publish. While `active()` is false nothing is fetched (a coordinator that does not hold the lease).
    """

    subscription: Subscription
    handler: Handler
    on_dead: Callable[[Envelope, str], Awaitable[Sequence[Envelope]]] | None = None
    active: Callable[[], bool] = _always
