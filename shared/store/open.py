"""Opens the store that the settings name; only this module chooses an adapter."""

from pathlib import Path

from shared.config.settings import StoreSettings, read_secret
from shared.errors import Fatal
from shared.store.memory import MemoryStore
from shared.store.port import Store


def open_store(settings: StoreSettings) -> Store:
    """The store behind `store.url`: `s3://PREFIX`, `bucket://NAME`, `file:///DIR`, `memory://` (in this process)."""
    scheme, _, rest = settings.url.partition("://")
    if scheme == "memory":
        return MemoryStore()
    from shared.store import object_store  # obstore is loaded only where it is used

    if scheme == "file":
        try:
            return object_store.local_store(Path(rest))
        except OSError as error:
            raise Fatal(f"store {settings.url}: cannot create or use this directory ({error})") from error
    if settings.endpoint is None or settings.access_key_file is None or settings.secret_key_file is None:
        raise ValueError("an s3:// store needs endpoint, access_key_file and secret_key_file")
    opened = object_store.single_bucket_store if scheme == "bucket" else object_store.s3_store
    return opened(
        rest,
        endpoint=settings.endpoint,
        access_key=read_secret(settings.access_key_file),
        secret_key=read_secret(settings.secret_key_file),
        region=settings.region,
        ca=settings.ca_file.read_text() if settings.ca_file else None,
    )
