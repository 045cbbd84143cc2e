"""Starts the whole system in order, keeps it alive, and ends it in the opposite order."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.stack.layout import Connection, StackLayout
from cli.stack.lock import locked_directory
from cli.stack.ports import PortAllocator
from cli.stack.process import ProcessSpec, StackError, SupervisedProcess
from cli.stack.servers import base_environment, nats_spec, s3_spec
from cli.stack.services import (
    JUDGE_URL,
    SERVICES,
    StackPorts,
    common_settings,
    rules_judge_spec,
    rules_judge_url,
    service_spec,
)
from cli.stack.signals import die_with_parent
from cli.stack.user_settings import EXPORTER_ROM, JUDGES_FILE

BUCKET = "zelda"
COMMAND_SETTINGS = (
    EXPORTER_ROM,
    JUDGES_FILE,
)  # `zelda export` replays with the ROM, `zelda judge` asks the same judges
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What a person may choose. `store` is a directory to use instead of the S3 server.

    `extra` holds further `ZELDA_*` settings by service_spec.
    """

    root: Path
    store: Path | None = None
    api_port: int | None = None
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    services: Sequence[str] = SERVICES


@dataclass(slots=True)
class LocalStack:
    """A system on this machine: where it answers, with which settings, and its processes by name.

    `lent` are settings of single services that commands beside them need, too.
    """

    layout: StackLayout
    addresses: StackPorts
    settings: Mapping[str, str]
    servers: list[SupervisedProcess]
    services: list[SupervisedProcess]
    lent: Mapping[str, str]
    supervisor: "asyncio.Task[None]" = field(init=False)
    announced: bool = field(init=False, default=False)

    @property
    def url(self) -> str:
        """Address of the REST interface and the HUD."""
        return f"http://127.0.0.1:{self.addresses.api}"

    @property
    def connection(self) -> Connection:
        """How a command line reaches it."""
        settings = {**self.lent, **self.settings, JUDGE_URL: rules_judge_url(self.addresses)}
        return Connection(self.url, self.layout.secret("operator"), os.getpid(), settings)

    @property
    def names(self) -> set[str]:
        """Which of the five services run."""
        return {one.spec.name for one in self.services}

    def process(self, name: str) -> SupervisedProcess:
        """One process by name."""
        return next(one for one in (*self.servers, *self.services) if one.spec.name == name)

    async def start(self) -> None:
        """Servers first, then streams and buckets, then the services."""
        self.layout.root.mkdir(parents=True, exist_ok=True)
        await _run_all(one.start() for one in self.servers)
        # A stream keeps an event until every consumer has it: one that nobody reads would fill it.
        absent = [word for name in SERVICES if name not in self.names for word in ("--without", name)]
        await _run_all([provision("store", self.settings), provision("bus", self.settings, absent)])
        await _run_all(one.start() for one in self.services)
        self.connection.save(self.layout.connection)
        self.announced = True

    async def keep(self) -> None:
        """Start again whatever crashes; raise StackError if something refuses to run at all."""
        await _run_all(one.keep() for one in (*self.servers, *self.services))

    async def end(self) -> None:
        """Services drain while bus and store still answer; then those end, too."""
        if hasattr(self, "supervisor"):
            self.supervisor.cancel()
        if self.announced:  # else the file, if there is one, is not ours
            self.layout.connection.unlink(missing_ok=True)
        await asyncio.gather(*(one.end() for one in self.services))
        await asyncio.gather(*(one.end() for one in self.servers))


@asynccontextmanager
async def run_stack(options: StackOptions, tell: Report) -> AsyncIterator[LocalStack]:
    """A whole system for the time of the body. Whatever happens there, nothing is left running after it."""
    with locked_directory(options.root):
        async with run_built_stack(build_stack(options, tell)) as system:
            yield system


@asynccontextmanager
async def run_built_stack(system: LocalStack) -> AsyncIterator[LocalStack]:
    """The same, from a system that was prepared before."""
    try:
        await system.start()
        system.supervisor = asyncio.create_task(system.keep())
        yield system
    finally:
        await system.end()


def build_stack(options: StackOptions, tell: Report) -> LocalStack:
    """Choose ports, make secrets, and describe every process; nothing runs yet."""
    layout, ports = StackLayout(options.root.absolute()), PortAllocator()
    if options.store:
        options.store.mkdir(parents=True, exist_ok=True)  # a place that cannot be one is told here, with its name
    addresses = StackPorts(
        bus=ports.free(),
        judge=ports.free(),
        api=ports.free(options.api_port),
        store=None if options.store else ports.free(),
        others={name: ports.free() for name in options.services if name != "coordinator"},
    )
    store_url = f"file://{options.store.absolute()}" if options.store else f"s3://{BUCKET}"
    settings = common_settings(layout, addresses, store_url)
    servers = [nats_spec(layout, addresses.bus, ports.free()), rules_judge_spec(addresses.judge)]
    if addresses.store is not None:
        servers.append(s3_spec(layout, ports, addresses.store))
    services = [
        service_spec(name, layout, addresses, {**settings, **options.extra.get(name, {})}) for name in options.services
    ]

    def supervised(spec: ProcessSpec) -> SupervisedProcess:
        return SupervisedProcess(spec, layout.logs / f"{spec.name}.log", tell)

    lent = {name: own[name] for own in options.extra.values() for name in COMMAND_SETTINGS if name in own}
    return LocalStack(layout, addresses, settings, [*map(supervised, servers)], [*map(supervised, services)], lent)


async def provision(part: str, settings: Mapping[str, str], arguments: Sequence[str] = ()) -> None:
    """Make buckets or streams; raise StackError with the reason if that fails. Nothing of it outlives this call."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"shared.{part}.provision",
        *arguments,
        env={**base_environment(), **settings},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,  # ctrl-C reaches us alone, as with the servers
        preexec_fn=die_with_parent,
    )
    try:
        said, _ = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()  # what is half made is made whole at the next start
        await process.wait()
        raise
    if process.returncode != 0:
        raise StackError(said.decode(errors="replace").strip().rpartition("\n")[2] or f"{part}: provisioning failed")


async def _run_all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all at once; the first failure is raised, as it is, when the others have been called off."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except* StackError as errors:
        raise errors.exceptions[0] from None
