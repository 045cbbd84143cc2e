"""Opens the store of a local system from the variables that its services get."""

from collections.abc import Mapping

from shared.runtime.settings import StoreSettings
from shared.store.open import open_store
from shared.store.port import Store

PREFIX = "ZELDA_STORE__"


def store_of(settings: Mapping[str, str]) -> Store:
    """The store that these `ZELDA_STORE__...` variables describe."""
    values = {name.removeprefix(PREFIX).lower(): value for name, value in settings.items() if name.startswith(PREFIX)}
    return open_store(StoreSettings.model_validate(values))
