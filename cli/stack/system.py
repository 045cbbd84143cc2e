"""Starts the whole system in order, keeps it alive, and ends it in the opposite order."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.stack.bonds import die_with_parent
from cli.stack.brought import EXPORTER_ROM, JUDGES
from cli.stack.layout import Connection, Layout
from cli.stack.lock import held
from cli.stack.ports import Ports
from cli.stack.process import Spec, StackError, Supervised
from cli.stack.servers import nats_server, plain_environment, s3_server
from cli.stack.services import JUDGE_URL, SERVICES, Addresses, judge_url, rules_judge, service, shared_settings

BUCKETS = "zelda"
LENT = (EXPORTER_ROM, JUDGES)  # `zelda export` replays with the ROM, `zelda judge` asks the same judges
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may choose. `store` is a directory to use instead of the S3 server.

    `extra` holds further `ZELDA_*` settings by service.
    """

    root: Path
    store: Path | None = None
    api_port: int | None = None
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    services: Sequence[str] = SERVICES


@dataclass(slots=True)
class System:
    """A system on this machine: where it answers, with which settings, and its processes by name.

    `lent` are settings of single services that commands beside them need, too.
    """

    layout: Layout
    addresses: Addresses
    settings: Mapping[str, str]
    servers: list[Supervised]
    services: list[Supervised]
    lent: Mapping[str, str]
    keeper: "asyncio.Task[None]" = field(init=False)
    announced: bool = field(init=False, default=False)

    @property
    def url(self) -> str:
        """Address of the REST interface and the HUD."""
        return f"http://127.0.0.1:{self.addresses.api}"

    @property
    def connection(self) -> Connection:
        """How a command line reaches it."""
        settings = {**self.lent, **self.settings, JUDGE_URL: judge_url(self.addresses)}
        return Connection(self.url, self.layout.secret("operator"), os.getpid(), settings)

    @property
    def names(self) -> set[str]:
        """Which of the five services run."""
        return {one.spec.name for one in self.services}

    def process(self, name: str) -> Supervised:
        """One process by name."""
        return next(one for one in (*self.servers, *self.services) if one.spec.name == name)

    async def start(self) -> None:
        """Servers first, then streams and buckets, then the services."""
        self.layout.root.mkdir(parents=True, exist_ok=True)
        await _all(one.start() for one in self.servers)
        # A stream keeps an event until every consumer has it: one that nobody reads would fill it.
        absent = [word for name in SERVICES if name not in self.names for word in ("--without", name)]
        await _all([provision("store", self.settings), provision("bus", self.settings, absent)])
        await _all(one.start() for one in self.services)
        self.connection.save(self.layout.connection)
        self.announced = True

    async def keep(self) -> None:
        """Start again whatever crashes; raise StackError if something refuses to run at all."""
        await _all(one.keep() for one in (*self.servers, *self.services))

    async def end(self) -> None:
        """Services drain while bus and store still answer; then those end, too."""
        if hasattr(self, "keeper"):
            self.keeper.cancel()
        if self.announced:  # else the file, if there is one, is not ours
            self.layout.connection.unlink(missing_ok=True)
        await asyncio.gather(*(one.end() for one in self.services))
        await asyncio.gather(*(one.end() for one in self.servers))


@asynccontextmanager
async def running(options: Options, tell: Tell) -> AsyncIterator[System]:
    """A whole system for the time of the body. Whatever happens there, nothing is left running after it."""
    with held(options.root):
        async with kept(prepare(options, tell)) as system:
            yield system


@asynccontextmanager
async def kept(system: System) -> AsyncIterator[System]:
    """The same, from a system that was prepared before."""
    try:
        await system.start()
        system.keeper = asyncio.create_task(system.keep())
        yield system
    finally:
        await system.end()


def prepare(options: Options, tell: Tell) -> System:
    """Choose ports, make secrets, and describe every process; nothing runs yet."""
    layout, ports = Layout(options.root.absolute()), Ports()
    if options.store:
        options.store.mkdir(parents=True, exist_ok=True)  # a place that cannot be one is told here, with its name
    addresses = Addresses(
        bus=ports.free(),
        judge=ports.free(),
        api=ports.free(options.api_port),
        store=None if options.store else ports.free(),
        others={name: ports.free() for name in options.services if name != "coordinator"},
    )
    store_url = f"file://{options.store.absolute()}" if options.store else f"s3://{BUCKETS}"
    settings = shared_settings(layout, addresses, store_url)
    servers = [nats_server(layout, addresses.bus, ports.free()), rules_judge(addresses.judge)]
    if addresses.store is not None:
        servers.append(s3_server(layout, ports, addresses.store))
    services = [
        service(name, layout, addresses, {**settings, **options.extra.get(name, {})}) for name in options.services
    ]

    def supervised(spec: Spec) -> Supervised:
        return Supervised(spec, layout.logs / f"{spec.name}.log", tell)

    lent = {name: own[name] for own in options.extra.values() for name in LENT if name in own}
    return System(layout, addresses, settings, [*map(supervised, servers)], [*map(supervised, services)], lent)


async def provision(part: str, settings: Mapping[str, str], arguments: Sequence[str] = ()) -> None:
    """Make buckets or streams; raise StackError with the reason if that fails. Nothing of it outlives this call."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"shared.{part}.provision",
        *arguments,
        env={**plain_environment(), **settings},
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


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all at once; the first failure is raised, as it is, when the others have been called off."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except* StackError as errors:
        raise errors.exceptions[0] from None
