"""Opens the store and the bus of a local stack from the `ZELDA_*` variables of its services."""

from collections.abc import Mapping

from shared.bus.port import Bus
from shared.config.settings import BusSettings, StoreSettings
from shared.store.open import open_store
from shared.store.port import Store

STORE_PREFIX, BUS_PREFIX = "ZELDA_STORE__", "ZELDA_BUS__"


def local_store(settings: Mapping[str, str]) -> Store:
    """Open the store that these `ZELDA_STORE__*` variables describe."""
    values = {
        name.removeprefix(STORE_PREFIX).lower(): value
        for name, value in settings.items()
        if name.startswith(STORE_PREFIX)
    }
    return open_store(StoreSettings.model_validate(values))


def bus_settings(settings: Mapping[str, str]) -> BusSettings:
    """The settings of the bus that these `ZELDA_BUS__*` variables describe."""
    values = {
        name.removeprefix(BUS_PREFIX).lower(): value for name, value in settings.items() if name.startswith(BUS_PREFIX)
    }
    return BusSettings.model_validate(values)


async def local_bus(settings: Mapping[str, str]) -> Bus:
    """Connect to the bus that these `ZELDA_BUS__*` variables describe; Transient while it does not answer."""
    from shared.bus.open import open_bus

    return await open_bus(bus_settings(settings), "zelda")
