"""Connects to the bus that the settings name. The only place where an adapter is chosen."""

from shared.bus.memory import MemoryBus
from shared.bus.port import Bus
from shared.config.settings import BusSettings


async def open_bus(settings: BusSettings, service: str) -> Bus:
    """The bus behind `bus.url`, connected as `service`; raises Transient while it cannot be reached."""
    if settings.url == "memory://":
        return MemoryBus()
    from shared.bus.jetstream.bus import connect  # the client is only loaded where it is used

    return await connect(settings, service)
