"""The dev profile as processes of this machine: every container with project code, as rendered, with another user.

Only addresses change: what a Service's name would lead to is a port of the loopback interface here.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.helm.bus_server import running_bus, server_binary
from tests.helm.pods import Container, Files, generated_secrets, materialize
from tests.helm.rendering import NAMESPACE, ROOT, Object, named, of_kind, profile, render
from tests.helm.store_server import running_store
from tests.servers import free_ports

USER, GROUP = 12345, 0  # what OpenShift does: any user id, always group 0
SERVICES = ("coordinator", "trainer", "judge", "rewardmodel", "exporter")
PYTHON = Path("/usr/bin/python3.11")  # one that other users can reach; packages come from this environment
READY_S = 90.0


@dataclass
class Release:
    """Addresses, files and processes of the release."""

    objects: list[Object]
    folder: Path
    secrets: dict[str, Files]
    addresses: dict[str, str] = field(default_factory=dict)
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    def container(self, component: str, template: Object) -> Container:
        """What a container gets, with its addresses changed and nothing writable but its empty directories."""
        made = materialize(self.objects, template, component, self.folder / component, self.secrets)
        for path in [path for path in made.root.rglob("*") if path.is_file()]:
            path.write_text(self.local(path.read_text()))
        for volume in template["spec"]["volumes"]:
            if "emptyDir" in volume:
                for mount in template["spec"]["containers"][0]["volumeMounts"]:
                    if mount["name"] == volume["name"]:
                        made.path(mount["mountPath"]).chmod(0o777)
        return made

    def local(self, text: str) -> str:
        """Text with the addresses of this machine."""
        for name, address in self.addresses.items():
            text = text.replace(name, address)
        return text

    async def start(
        self, name: str, container: Container, more: dict[str, str] | None = None
    ) -> asyncio.subprocess.Process:
        """Start a container's command as the other user."""
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        environment = {name: self.local(value) for name, value in container.environment.items()} | (more or {})
        environment |= {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{packages}"}
        command = [f"{container.root}{part}" if part.startswith("/script/") else part for part in container.command]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *command, env=environment, cwd=ROOT, stdout=log, stderr=log, user=USER, group=GROUP, extra_groups=[]
            )
        self.processes[name] = process
        return process

    async def finish(self, name: str, container: Container) -> str:
        """Run a container to its end and return what it wrote; raise if it fails."""
        process = await self.start(name, container)
        code = await process.wait()
        log = self.log(name)
        if code:
            raise RuntimeError(f"{name} ended with {code}: {log[-3000:]}")
        return log

    def log(self, name: str) -> str:
        """What a process wrote."""
        return (self.folder / f"{name}.log").read_text()


def impossible() -> str | None:
    """The reason why this machine cannot run the release, or None."""
    if os.geteuid() != 0:
        return "needs root to start processes as another user"
    if not PYTHON.exists() or sys.version_info[:2] != (3, 11):
        return f"needs {PYTHON}, which other users can start"
    return None if server_binary() else "no nats-server"


@asynccontextmanager
async def installed() -> AsyncIterator[Release]:
    """Bus, store, rules judge, hook job and the five services of the dev profile; ready when the block begins."""
    objects = render(profile("dev"))
    folder = _new_folder()
    release = Release(objects, folder, generated_secrets(objects))
    try:
        async with AsyncExitStack() as stack:
            await _servers(release, stack)
            stack.push_async_callback(_ended, release)
            await _our_code(release)
            yield release
    finally:
        shutil.rmtree(folder)


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="zr", dir="/tmp"))  # short, because Ray puts sockets below it
    folder.chmod(0o755)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(PYTHON)
    return folder


async def _servers(release: Release, stack: AsyncExitStack) -> None:
    for part in ("bus", "store"):
        (release.folder / part).mkdir()
    binary = server_binary() or "nats-server"
    bus = await stack.enter_async_context(
        running_bus(binary, release.folder / "bus", secret=release.secrets["zelda-bus"])
    )
    keys = release.secrets["zelda-store"]
    store = stack.enter_context(
        running_store(release.folder / "store", keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"])
    )
    release.addresses[f"nats://zelda-nats.{NAMESPACE}.svc:4222"] = bus.addresses[0]
    release.addresses[f"http://zelda-s3.{NAMESPACE}.svc:8333"] = store.endpoint


async def _our_code(release: Release) -> None:
    judge, *ports = free_ports(1 + len(SERVICES))
    release.addresses[f"http://zelda-rules-judge.{NAMESPACE}.svc:8080"] = f"http://127.0.0.1:{judge}"
    release.addresses[f"http://zelda-coordinator.{NAMESPACE}.svc:8080"] = f"http://127.0.0.1:{ports[0]}"
    template = named(release.objects, "Deployment", "zelda-rules-judge")["spec"]["template"]
    rules = release.container("rules-judge", template)
    rules.command[-1] = str(judge)
    await release.start("rules-judge", rules)
    (job,) = (one for one in of_kind(release.objects, "Job") if "-provision-" in one["metadata"]["name"])
    await release.finish("provision", release.container("provision", job["spec"]["template"]))
    for service, port in zip(SERVICES, ports, strict=True):
        template = named(release.objects, "Deployment", f"zelda-{service}")["spec"]["template"]
        await release.start(service, release.container(service, template), {"ZELDA_HTTP__PORT": str(port)})
    for service, port in zip(SERVICES, ports, strict=True):
        await _ready(release, service, f"http://127.0.0.1:{port}/readyz")


async def _ready(release: Release, service: str, address: str) -> None:
    for _ in range(int(READY_S / 0.25)):
        if release.processes[service].returncode is not None:
            break
        try:
            with await asyncio.to_thread(urllib.request.urlopen, address, timeout=3) as answer:
                answer.read()
                return
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:
            pass
        await asyncio.sleep(0.25)
    raise TimeoutError(f"{service} does not become ready: {release.log(service)[-3000:]}")


async def _ended(release: Release) -> None:
    for process in release.processes.values():
        if process.returncode is None:
            process.terminate()
    await asyncio.gather(*(process.wait() for process in release.processes.values()))
