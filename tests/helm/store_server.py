"""Starts a real S3 server with the arguments that the chart renders."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helm.rendering import named, profile, render
from tests.servers import free_ports

WEED = Path(sys.executable).parent / "weed"
PARTS = ("master", "volume", "filer", "admin")


@contextmanager
def running_store(folder: Path, access_key: str, secret_key: str) -> Iterator[str]:
    """Address of a server on free ports that keeps its objects in `folder`."""
    (container,) = named(render(profile("dev")), "StatefulSet", "zelda-s3")["spec"]["template"]["spec"]["containers"]
    port, figures, *others = free_ports(2 + len(PARTS))
    _, *arguments = container["command"]
    moved = {
        "-dir=/data": f"-dir={folder}",
        "-s3.port=8333": f"-s3.port={port}",
        "-ip.bind=0.0.0.0": "-ip.bind=127.0.0.1",
        "-metricsPort=9327": f"-metricsPort={figures}",
    }
    if not moved.keys() <= set(arguments):
        raise LookupError(f"the rendered arguments are others: {arguments}")
    more = [f"-{part}.port={other}" for part, other in zip(PARTS, others, strict=True)]
    keys = {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key}
    environment = {"HOME": str(folder), "TMPDIR": str(folder), **keys}
    command = [str(WEED), *(moved.get(argument, argument) for argument in arguments), *more]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
