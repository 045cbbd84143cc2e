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
    events to publish. While `active()` is false nothing is fetched (a coordinator without the lease).
    """

    subscription: Subscription
    handler: Handler
    on_dead: Callable[[Envelope, str], Awaitable[Sequence[Envelope]]] | None = None
    active: Callable[[], bool] = _always
