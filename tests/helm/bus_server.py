"""Starts a real nats-server from the configuration that the chart renders, with generated credentials."""

import asyncio
import os
import runpy
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.helm.rendering import CHART, named, profile, render

READY_S = 10.0


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server_binary() -> str | None:
    """The real server, if it is installed."""
    return shutil.which("nats-server") or shutil.which("nats-server", path=str(Path(sys.executable).parent))


def credentials(users: list[str]) -> dict[str, str]:
    """Entries of the bus Secret, made by the very script that the hook job runs."""
    entries: Any = runpy.run_path(str(CHART / "files" / "make_secrets.py"))["bus_entries"](users)
    return dict(entries)


def configuration(folder: Path, port: int) -> tuple[Path, list[str]]:
    """The rendered dev configuration on a free port and in `folder`, and its users."""
    objects = render(profile("dev"))
    text: str = named(objects, "ConfigMap", "zelda-nats")["data"]["nats.conf"]
    (container,) = named(objects, "StatefulSet", "zelda-nats")["spec"]["template"]["spec"]["containers"]
    users = [e["name"].removesuffix("_PASSWORD").lower() for e in container["env"] if e["name"].endswith("_PASSWORD")]
    text = text.replace("0.0.0.0:4222", f"127.0.0.1:{port}").replace("0.0.0.0:8222", f"127.0.0.1:{free_port()}")
    path = folder / "nats.conf"
    path.write_text(text.replace("store_dir: /data", f'store_dir: "{folder}/data"'))
    return path, users


@asynccontextmanager
async def running_bus(binary: str, folder: Path) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """(address, entries of the bus Secret) of a server that answers."""
    port = free_port()
    path, users = configuration(folder, port)
    secret = credentials(users)
    passwords = {f"{user.upper()}_PASSWORD": secret[f"{user}.password"] for user in users}
    environment = {"PATH": os.environ["PATH"], "POD_NAME": "zelda-nats-0", **passwords}
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(binary, "-c", str(path), env=environment, stderr=log, stdout=log)
    try:
        await _answering(port, process, folder / "log")
        yield f"nats://127.0.0.1:{port}", secret
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answering(port: int, process: asyncio.subprocess.Process, log: Path) -> None:
    for _ in range(int(READY_S / 0.05)):
        if process.returncode is not None:
            break
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return
    raise TimeoutError(f"nats-server does not answer: {log.read_text()[-2000:]}")
