"""The interface between the runtime and a service: what each provides to the other."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from shared.config.settings import ServiceSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from shared.bus.consumer import Consumer
    from shared.bus.port import Bus
    from shared.store.port import Store

DRAIN_S: Final = 25.0  # below Kubernetes' default grace period of 30 s

S = TypeVar("S", bound=ServiceSettings)


@dataclass(frozen=True, slots=True)
class ServicePorts:
    """What the runtime provides to a service."""

    bus: "Bus"
    store: "Store"
    stopping: asyncio.Event
    """Set when the service must stop; long work polls it."""


def _always_ready() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Service:
    """What a service provides to the runtime.

    `background` jobs run until the end and are then cancelled; a failed one restarts with a growing pause, unless it
    raised Fatal. `drain` is awaited once consumption has ended. `drain_s` bounds both; ZELDA_SHUTDOWN__DRAIN_S replaces
    it. `not_ready` adds a reason to /readyz.
    """

    consumers: "Sequence[Consumer]" = ()
    background: Sequence[Callable[[], Awaitable[None]]] = ()
    app: "ASGIApp | None" = None
    drain: Callable[[], Awaitable[None]] | None = None
    drain_s: float = DRAIN_S
    not_ready: Callable[[], str | None] = _always_ready


Build = Callable[[S, ServicePorts], Awaitable[Service]]
