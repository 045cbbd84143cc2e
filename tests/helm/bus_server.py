"""Starts real nats-servers from the configuration that the chart renders, with generated credentials."""

import asyncio
import os
import runpy
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.certificates import certificate
from tests.helm.pods import literal
from tests.helm.rendering import CHART, Object, named, profile, render
from tests.servers import free_ports

READY_S = 10.0
CLIENT, CLUSTER, MONITOR = "0.0.0.0:4222", "0.0.0.0:6222", "0.0.0.0:8222"


@dataclass(frozen=True)
class RunningBus:
    """Addresses of the servers, the entries of the bus Secret, and the authority of their certificates, if any."""

    addresses: list[str]
    secret: dict[str, str]
    authority: Path | None


def server_binary() -> str | None:
    """The real server, if it is installed."""
    return shutil.which("nats-server") or shutil.which("nats-server", path=str(Path(sys.executable).parent))


def credentials(users: list[str]) -> dict[str, str]:
    """Entries of the bus Secret, made by the hook job's script."""
    entries: Any = runpy.run_path(str(CHART / "files" / "make_secrets.py"))["bus_entries"](users)
    return dict(entries)


@asynccontextmanager
async def running_bus(
    binary: str, folder: Path, name: str = "dev", secret: dict[str, str] | None = None
) -> AsyncIterator[RunningBus]:
    """The bus of a profile, one process for each pod, until the block ends. Creates a Secret without `secret`."""
    objects = render(profile(name))
    text: str = named(objects, "ConfigMap", "zelda-nats")["data"]["nats.conf"]
    stateful = named(objects, "StatefulSet", "zelda-nats")["spec"]
    container, *_ = stateful["template"]["spec"]["containers"]  # beside it, the exporter of its figures
    users = [e["name"].removesuffix("_PASSWORD").lower() for e in container["env"] if e["name"].endswith("_PASSWORD")]
    secret, ports = secret or credentials(users), free_ports(3 * stateful["replicas"])
    authority = certificate(folder) if "tls {" in text else None
    processes = [
        await _start(binary, folder, text, _environment(container, secret, ports, index), ports[3 * index :])
        for index in range(stateful["replicas"])
    ]
    try:
        for index, process in enumerate(processes):
            await _answering(ports[3 * index], process, folder / f"log-{ports[3 * index]}")
        scheme = "tls" if authority else "nats"
        yield RunningBus([f"{scheme}://127.0.0.1:{port}" for port in ports[::3]], secret, authority)
    finally:
        for process in processes:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def _environment(container: Object, secret: dict[str, str], ports: list[int], index: int) -> dict[str, str]:
    passwords = {name.replace(".password", "_PASSWORD").upper(): v for name, v in secret.items() if ".password" in name}
    routes = {}
    for name, value in literal(container).items():
        host, _, _ = value.rpartition("@")
        number = int(name.removeprefix("ROUTE_"))
        address = f"{host}@127.0.0.1:{ports[3 * number + 1]}"
        routes[name] = address.replace("$(CLUSTER_PASSWORD)", passwords["CLUSTER_PASSWORD"])
    return {"PATH": os.environ["PATH"], "POD_NAME": f"zelda-nats-{index}", **passwords, **routes}


async def _start(
    binary: str, folder: Path, text: str, environment: dict[str, str], ports: list[int]
) -> asyncio.subprocess.Process:
    for address, port in zip((CLIENT, CLUSTER, MONITOR), ports, strict=False):
        text = text.replace(address, f"127.0.0.1:{port}")
    path = folder / f"nats-{ports[0]}.conf"
    path.write_text(text.replace(" /data\n", f' "{folder}/data-{ports[0]}"\n').replace("/etc/nats-tls/", f"{folder}/"))
    with (folder / f"log-{ports[0]}").open("wb") as log:
        return await asyncio.create_subprocess_exec(binary, "-c", str(path), env=environment, stderr=log, stdout=log)


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
    raise TimeoutError(f"nats-server does not answer: {_tail(log)}")


def _tail(log: Path) -> str:
    return log.read_text()[-2000:]
