"""The local stack: starts bus, store, judge and services in order, supervises them, and stops them in reverse order."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.stack.layout import Connection, StackLayout
from cli.stack.lock import locked_directory
from cli.stack.ports import PortAllocator, is_free
from cli.stack.process import PortTaken, ProcessSpec, StackError, SupervisedProcess
from cli.stack.server_guard import guard_servers
from cli.stack.servers import base_environment, nats_spec, s3_spec
from cli.stack.services import (
    JUDGE_URL,
    SERVICES,
    ModelServer,
    StackPorts,
    common_settings,
    rules_judge_spec,
    rules_judge_url,
    service_spec,
)
from cli.stack.signals import die_with_parent
from cli.stack.user_settings import EXPORTER_ROM, JUDGES_FILE
from shared.process.exits import EXIT_TOPOLOGY

BUCKET = "zelda"
REPAIR_REST_S = 10.0
STARTS = 4  # two systems that start together meet on a port in about 7 % of the starts
COMMAND_SETTINGS = (EXPORTER_ROM, JUDGES_FILE)  # `zelda export` replays with the ROM, `zelda judge` asks these judges
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What the user may choose. `store` is a directory that replaces the S3 server.

    `extra` holds additional `ZELDA_*` settings by service. `llm` is a language model that judges.
    """

    root: Path
    store: Path | None = None
    api_port: int | None = None
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    services: Sequence[str] = SERVICES
    llm: ModelServer | None = None


@dataclass(slots=True)
class LocalStack:
    """A whole system on this machine: its ports, its settings and its processes.

    `command_settings` are settings of single services that other `zelda` commands need as well.
    """

    layout: StackLayout
    ports: StackPorts
    settings: Mapping[str, str]
    servers: list[SupervisedProcess]
    services: list[SupervisedProcess]
    command_settings: Mapping[str, str]
    supervisor: "asyncio.Task[None]" = field(init=False)
    connection_saved: bool = field(init=False, default=False)

    @property
    def url(self) -> str:
        """Address of the REST API and the live page."""
        return f"http://127.0.0.1:{self.ports.api}"

    @property
    def connection(self) -> Connection:
        """How other `zelda` commands reach this system."""
        settings = {**self.command_settings, **self.settings, JUDGE_URL: rules_judge_url(self.ports)}
        return Connection(self.url, self.layout.secret("operator"), os.getpid(), settings)

    @property
    def service_names(self) -> set[str]:
        """The names of the services that run."""
        return {one.spec.name for one in self.services}

    def process(self, name: str) -> SupervisedProcess:
        """Return one process by name."""
        return next(one for one in (*self.servers, *self.services) if one.spec.name == name)

    async def start(self) -> None:
        """Start the servers, provision streams and buckets, then start the services."""
        self.layout.root.mkdir(parents=True, exist_ok=True)
        await _run_all(one.start() for one in self.servers)
        await _run_all([provision("store", self.settings), self.provision_bus()])
        await _run_all(one.start() for one in self.services)
        self.connection.save(self.layout.connection)
        self.connection.save(self.layout.ended)
        self.connection_saved = True

    async def provision_bus(self) -> None:
        """Create missing streams and consumers."""
        # A stream keeps an event until every consumer has it: a consumer without a service would fill the stream.
        absent = [word for name in SERVICES if name not in self.service_names for word in ("--without", name)]
        await provision("bus", self.settings, absent)

    async def supervise(self) -> None:
        """Restart crashed processes, and servers that refuse work; StackError when one rejects its configuration."""
        guards = guard_servers(self.servers, self.settings, self.layout.root)
        await _run_all([*(one.supervise() for one in (*self.servers, *self.services)), *guards])

    async def stop(self) -> None:
        """Drain and stop the services while bus and store still answer; then stop the servers.

        When this is cancelled, it kills the processes that it waits for and goes on.
        """
        if hasattr(self, "supervisor"):
            self.supervisor.cancel()
        if self.connection_saved:  # otherwise the file belongs to another system
            self.layout.connection.unlink(missing_ok=True)
        try:
            await asyncio.gather(*(one.stop() for one in self.services))
        finally:
            await asyncio.gather(*(one.stop() for one in self.servers))


@asynccontextmanager
async def run_stack(options: StackOptions, report: Report) -> AsyncIterator[LocalStack]:
    """Run a whole system during the body; stop every process afterwards, also after an error."""
    with locked_directory(options.root):
        system = await _start_on_free_ports(options, report)
        try:
            system.supervisor = asyncio.create_task(system.supervise())
            yield system
        finally:
            await system.stop()


async def _start_on_free_ports(options: StackOptions, report: Report) -> LocalStack:
    """Start a system; choose other ports when another program was faster on one of them."""
    ports = PortAllocator()
    for attempt in range(STARTS, 0, -1):
        system = build_stack(options, report, ports)
        try:
            await system.start()
        except PortTaken as error:
            await system.stop()
            if attempt == 1 or not is_free_or_unchosen(options.api_port):
                raise
            report(f"{error} Starting again on other ports.")
        except BaseException:
            await system.stop()
            raise
        else:
            return system
    raise AssertionError("the loop returns or raises")


def is_free_or_unchosen(port: int | None) -> bool:
    """Whether another start can succeed: the user's own port cannot be replaced by another one."""
    return port is None or is_free(port)


def build_stack(options: StackOptions, report: Report, allocator: PortAllocator) -> LocalStack:
    """Allocate ports, create secrets and describe every process; start nothing."""
    layout = StackLayout(options.root.absolute())
    if options.store:
        options.store.mkdir(parents=True, exist_ok=True)  # an unusable path fails here, with its name
    ports = StackPorts(
        bus=allocator.allocate(),
        judge=allocator.allocate(),
        api=allocator.allocate(options.api_port),
        store=None if options.store else allocator.allocate(),
        services={name: allocator.allocate() for name in options.services if name != "coordinator"},
    )
    store_url = f"file://{options.store.absolute()}" if options.store else f"s3://{BUCKET}"
    settings = common_settings(layout, ports, store_url)
    servers = [nats_spec(layout, ports.bus), rules_judge_spec(ports.judge)]
    if ports.store is not None:
        servers.append(s3_spec(layout, allocator, ports.store))
    extra = dict(options.extra)
    if options.llm is not None:
        port = allocator.allocate()
        servers.append(options.llm.server(layout, port))
        extra["judge"] = options.llm.judge_settings(layout, port, extra.get("judge", {}))
    repairs = {EXIT_TOPOLOGY: _provision_again(lambda: system.provision_bus())}
    services = [
        service_spec(name, layout, ports, {**settings, **extra.get(name, {})}, repairs) for name in options.services
    ]

    def supervised(spec: ProcessSpec) -> SupervisedProcess:
        return SupervisedProcess(spec, layout.logs / f"{spec.name}.log", report)

    command_settings = {name: own[name] for own in extra.values() for name in COMMAND_SETTINGS if name in own}
    system = LocalStack(
        layout, ports, settings, [*map(supervised, servers)], [*map(supervised, services)], command_settings
    )
    return system


def _provision_again(provision_bus: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], Awaitable[str | None]]:
    """A repair after services missed their streams: somebody deleted them, or the bus lost its files."""
    lock, repaired = asyncio.Lock(), [-REPAIR_REST_S]

    async def repair() -> str | None:
        async with lock:  # all services end within seconds: one provisioning suffices
            if time.monotonic() - repaired[0] < REPAIR_REST_S:
                return None
            await provision_bus()
            repaired[0] = time.monotonic()
        return "The bus had lost streams or consumers: they exist again, and the coordinator republishes open events."

    return repair


async def provision(part: str, settings: Mapping[str, str], arguments: Sequence[str] = ()) -> None:
    """Create the buckets (`store`) or streams (`bus`) in a child process; StackError gives the reason of a failure."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"shared.{part}.provision",
        *arguments,
        env={**base_environment(), **settings},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,  # ctrl-C reaches this process alone
        preexec_fn=die_with_parent,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()  # the next start completes it
        await process.wait()
        raise
    if process.returncode != 0:
        reason = output.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {process.returncode}"
        raise StackError(f"the {part} cannot be provisioned: {reason}")


async def _run_all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all concurrently; the first StackError cancels the others and propagates unwrapped."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except* StackError as errors:
        raise errors.exceptions[0] from None
