"""`zelda doctor`: check this machine and the local system, and suggest a fix for each failure."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.client import LOCAL_CONNECTION, open_client
from cli.console import print_json, print_line, print_status
from cli.errors import FAILED, INSTALL, OK, CliError
from cli.stack.layout import Connection
from cli.stack.ports import PortAllocator
from cli.stack.process import StackError
from cli.stack.servers import find_program
from cli.stack.services import JUDGE_URL
from cli.stack.user_settings import JUDGES_FILE, read_rom

if TYPE_CHECKING:
    from shared.llm.route_spec import RouteSpec

app = typer.Typer(help="Check this machine and the local system, and suggest a fix for each failure.")
FREE_BYTES: Final = 3 * 1024**3
PACKAGES: Final = {
    "judge": ("httpx", "yaml", "PIL"),
    "coordinator": ("fastapi",),
    "exporter": ("pyboy", "av"),
    "rewardmodel": ("torch", "safetensors"),
    "trainer": ("ray", "torch", "gymnasium", "pyboy"),
}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: what was checked, whether it passed, what was found, and how to fix it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""

    def as_json(self) -> dict[str, str | bool]:
        """The published field names of `--json`."""
        return {"name": self.name, "well": self.ok, "seen": self.detail, "fix": self.fix}


@app.callback(invoke_without_command=True)
def doctor(
    rom: Annotated[Path | None, typer.Option(help="a ROM image to identify")] = None,
    judges: Annotated[Path | None, typer.Option(help="a judges file to check before a system uses it")] = None,
    speed: Annotated[
        bool, typer.Option("--speed", help="measure how many segments per hour the judges can score")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Run all checks and print a fix for each failure; exit code 1 if any check failed."""
    results = list(run_checks(rom, judges=judges, speed=speed))
    if as_json:
        print_json([result.as_json() for result in results])
    else:
        for result in results:
            print_line(f"{'ok  ' if result.ok else 'FAIL'} {result.name}: {result.detail}")
            if not result.ok:
                print_line(f"     fix: {result.fix}")
    failed = sum(not result.ok for result in results)
    print_status("All checks passed." if not failed else f"{failed} of {len(results)} checks failed.")
    raise typer.Exit(FAILED if failed else OK)


def run_checks(
    rom: Path | None, local: Path = LOCAL_CONNECTION, *, judges: Path | None = None, speed: bool = False
) -> Iterator[CheckResult]:
    """Run all checks, those of the machine first."""
    yield check_python()
    yield from check_packages()
    yield from (check_program(name) for name in ("nats-server", "weed"))
    yield check_disk()
    yield check_ports()
    yield check_rom(rom)
    try:
        saved = Connection.of_running(local)
    except CliError as error:
        yield CheckResult("system", False, str(error), f"rm {local}; zelda up")
        return
    if saved is None:
        yield CheckResult("system", True, "not running (start it with `zelda up`)")
    else:
        yield check_coordinator(saved)
        yield check_server("store", saved, _probe_store)
        yield check_server("bus", saved, _probe_bus)
        yield from check_judges(saved)
    if judges is not None:
        yield from asyncio.run(_check_routes(judges))
    if speed:
        yield from check_judging_speed(judges, saved)


def check_python() -> CheckResult:
    """Check the version of Python."""
    detail = ".".join(map(str, sys.version_info[:3]))
    return CheckResult(
        "python", (3, 11) <= sys.version_info < (3, 13), detail, "install Python 3.11 or 3.12, then make setup"
    )


def check_packages() -> Iterator[CheckResult]:
    """Check that the libraries of each service are installed."""
    for service, names in PACKAGES.items():
        missing = [name for name in names if find_spec(name) is None]
        detail = f"missing {', '.join(missing)}" if missing else "complete"
        yield CheckResult(f"packages of {service}", not missing, detail, INSTALL.format(service))


def check_program(name: str) -> CheckResult:
    """Check that the program of a server is installed."""
    try:
        return CheckResult(name, True, find_program(name))
    except StackError as error:
        return CheckResult(name, False, "not found", str(error))


def check_disk() -> CheckResult:
    """Check the free disk space."""
    free = shutil.disk_usage(Path.cwd()).free
    fix = f"free {FREE_BYTES // 1024**3} GB on this disk, or work in a directory on another disk"
    return CheckResult("disk", free >= FREE_BYTES, f"{free / 1024**3:.1f} GB free", fix)


def check_ports() -> CheckResult:
    """Check that the loopback interface has free ports."""
    try:
        allocator = PortAllocator()
        return CheckResult("ports", True, f"free, e.g. {', '.join(str(allocator.allocate()) for _ in range(3))}")
    except CliError as error:
        return CheckResult("ports", False, str(error), "stop other systems on this machine")


def check_rom(rom: Path | None) -> CheckResult:
    """Identify the ROM; without one, only Bramble can be played."""
    from shared.errors import ZeldaError

    if rom is None:
        return CheckResult("rom", True, "no ROM given; the free game Bramble needs none")
    from shared.game.games.oracle import identify_rom

    try:
        return CheckResult("rom", True, identify_rom(read_rom(rom)).name)
    except OSError as error:
        return CheckResult("rom", False, f"{rom}: {error.strerror}", "name the .gbc file of the game")
    except ZeldaError as error:
        return CheckResult("rom", False, str(error), "use an unmodified ROM image, or play Bramble")


def check_coordinator(saved: Connection) -> CheckResult:
    """Check that the coordinator accepts the token."""
    try:
        with open_client(saved) as client:
            number = len(client.get("/runs", limit=1000)["items"])
    except CliError as error:
        return CheckResult(
            "coordinator",
            False,
            str(error),
            "read `zelda run logs coordinator`, then restart the system with `zelda up`",
        )
    return CheckResult("coordinator", True, f"{saved.url} answers, {number} runs")


def check_server(name: str, saved: Connection, probe: Callable[[Connection], str]) -> CheckResult:
    """Check that the store or the bus of the local system answers."""
    from shared.errors import ZeldaError

    try:
        return CheckResult(name, True, probe(saved))
    except (
        ZeldaError,
        OSError,
        ValueError,
        KeyError,
    ) as error:  # the saved connection may lack the store, or name a wrong one
        return CheckResult(
            name, False, str(error), f"read `zelda run logs {name}`, then restart the system with `zelda up`"
        )


def _probe_store(saved: Connection) -> str:
    from cli.stack.connections import local_store

    asyncio.run(local_store(saved.settings).exists("models/probe"))
    return saved.settings["ZELDA_STORE__URL"]


def _probe_bus(saved: Connection) -> str:
    from cli.stack.connections import local_bus

    async def probe() -> str:
        bus = await local_bus(saved.settings)
        await bus.close()
        return saved.settings["ZELDA_BUS__URL"]

    return asyncio.run(probe())


def check_judges(saved: Connection) -> Iterator[CheckResult]:
    """Check the routes of the judges file, or the rules judge if there is no file."""
    file = saved.settings.get(JUDGES_FILE)
    if file is not None:
        yield from asyncio.run(_check_routes(Path(file)))
        return
    from cli.stack.probes import is_up

    url = saved.settings.get(JUDGE_URL)
    well = url is not None and asyncio.run(is_up(f"{url}/models"))
    yield CheckResult("judges", well, url or "its address is unknown", "read `zelda run logs rules-judge`")


def check_judging_speed(judges: Path | None, saved: Connection | None) -> Iterator[CheckResult]:
    """Measure the judges of this file, or those of the running system."""
    from cli.llm.speed_check import check_speed

    settings = {} if saved is None else saved.settings
    file = judges or (Path(settings[JUDGES_FILE]) if JUDGES_FILE in settings else None)
    if file is None and JUDGE_URL not in settings:
        yield CheckResult("judging speed", False, "no judges to ask", "start a system, or name a file with --judges")
        return
    yield from (CheckResult(*found) for found in check_speed(file, settings.get(JUDGE_URL, "")))


async def _check_routes(path: Path) -> list[CheckResult]:
    from services.judge.config import load_judges
    from shared.config.yaml_document import ConfigError

    try:
        file = load_judges(path, "")
    except ConfigError as error:
        return [
            CheckResult(
                "judges", False, str(error), "fix the file, then restart the system with `zelda up --judges FILE`"
            )
        ]
    if not file.routes:
        return [CheckResult("judges", True, f"{path} names no routes: all its judges use rules")]
    required = {name: {judge.model for judge in file.judges if judge.route == name} for name in file.routes}
    return [await _check_route(name, spec, required[name]) for name, spec in file.routes.items()]


async def _check_route(name: str, spec: "RouteSpec", required: Collection[str]) -> CheckResult:
    """Check that the route answers and serves the models of its judges; some servers do not list their models."""
    from services.judge.telemetry import ROUTES
    from shared.llm.port import RouteUnavailable
    from shared.llm.route import RouteClient

    route, title = RouteClient(name, spec, ROUTES), f"judges' route {name}"
    fix = f"start its server, or correct route {name} in the judges file"
    try:
        served = await route.list_models()
    except RouteUnavailable as error:
        return CheckResult(title, False, f"{spec.url}: {error}", fix)
    finally:
        await route.close()
    if served and (missing := sorted(set(required) - served.keys())):
        return CheckResult(
            title, False, f"{spec.url} serves {', '.join(sorted(served))}, not {', '.join(missing)}", fix
        )
    return CheckResult(title, True, f"{spec.url} answers" + ("" if served else ", but does not list its models"))
