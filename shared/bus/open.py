"""Connects to the bus that the settings name. Only this module chooses an adapter."""

from shared.bus.memory import MemoryBus
from shared.bus.port import Bus, DeadLetters
from shared.config.settings import BusSettings


async def open_bus(settings: BusSettings, service: str) -> Bus:
    """The bus at `bus.url`, connected as `service`; raises Transient while it is unreachable."""
    if settings.url == "memory://":
        return MemoryBus()
    from shared.bus.jetstream.bus import connect  # loaded only where it is used

    return await connect(settings, service)


def open_dead_letters(bus: Bus) -> DeadLetters:
    """The dead letters of a bus that `open_bus` returned."""
    if isinstance(bus, MemoryBus):
        return bus.dead
    from shared.bus.jetstream.bus import NatsBus
    from shared.bus.jetstream.dead_letters import NatsDeadLetters

    if not isinstance(bus, NatsBus):
        raise TypeError(f"{type(bus).__name__} keeps no dead letters")
    return NatsDeadLetters(bus)
