"""Starts a real S3 server with the arguments and the environment that the chart renders, or that compose has."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shared.config.settings import StoreSettings
from shared.errors import Transient
from shared.store.open import open_store
from tests.helm.rendering import named, profile, render
from tests.servers import free_ports

WEED: Final = Path(sys.executable).parent / "weed"
PARTS: Final = ("master", "volume", "filer", "admin")
START_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class RunningStore:
    """Address and process of a server."""

    endpoint: str
    pid: int


@contextmanager
def running_store(folder: Path, access_key: str, secret_key: str) -> Iterator[RunningStore]:
    """The chart's server on free ports. It keeps its objects in `folder`."""
    (container,) = named(render(profile("dev")), "StatefulSet", "zelda-s3")["spec"]["template"]["spec"]["containers"]
    _, *arguments = container["command"]
    keys = {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key}
    environment = {one["name"]: _value(one, keys) for one in container["env"]}
    with running_weed(arguments, folder, environment, folder) as store:
        yield store


def _value(variable: Mapping[str, Any], keys: Mapping[str, str]) -> str:
    """The value of a pod's variable; `keys` is the Secret of the store."""
    return str(variable["value"]) if "value" in variable else keys[variable["valueFrom"]["secretKeyRef"]["key"]]


@contextmanager
def running_weed(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], directory: Path
) -> Iterator[RunningStore]:
    """A server in `directory` with these arguments, its ports and its folder moved to free ones on loopback."""
    port, figures, *others = free_ports(2 + len(PARTS))
    moved = {
        "-dir=/data": f"-dir={folder}",
        "-s3.port=8333": f"-s3.port={port}",
        "-ip.bind=0.0.0.0": "-ip.bind=127.0.0.1",
        "-metricsPort=9327": f"-metricsPort={figures}",
    }
    if not moved.keys() <= set(arguments):
        raise LookupError(f"the arguments are others: {arguments}")
    more = [f"-{part}.port={other}" for part, other in zip(PARTS, others, strict=True)]
    own = {**environment, "HOME": str(folder), "TMPDIR": str(folder)}
    command = [str(WEED), *(moved.get(argument, argument) for argument in arguments), *more]
    process = subprocess.Popen(command, env=own, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield RunningStore(f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        process.wait(30)


async def first_put(settings: StoreSettings) -> None:
    """Wait for the volume part, which joins a moment after the S3 port answers."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            await open_store(settings).put("episodes/probe", b"1")
            return
        except Transient:
            if time.monotonic() > deadline:
                raise
