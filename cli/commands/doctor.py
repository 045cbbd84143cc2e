"""`zelda doctor`: looks at this machine and at the system, and says for each failure how to mend it."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.client import LOCAL_CONNECTION, open_client
from cli.console import print_json, print_line, print_status
from cli.errors import FAILED, OK, CliError
from cli.stack.layout import Connection
from cli.stack.ports import PortAllocator
from cli.stack.process import StackError
from cli.stack.servers import find_program
from cli.stack.services import JUDGE_URL
from cli.stack.user_settings import JUDGES_FILE

if TYPE_CHECKING:
    from services.judge.config import RouteSpec

app = typer.Typer(help="Check this machine and the system, with a fix for each failure.")
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
    """One check: what was looked at, whether it is well, what was seen, and what to do otherwise."""

    name: str
    well: bool
    seen: str
    fix: str = ""


@app.callback(invoke_without_command=True)
def doctor(
    rom: Annotated[Path | None, typer.Option(help="a game's ROM to identify_rom")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Check everything; exit 0 if all is well, else 1."""
    findings = list(examine(rom))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print_line(f"{'ok  ' if finding.well else 'FAIL'} {finding.name}: {finding.seen}")
            if not finding.well:
                print_line(f"     fix: {finding.fix}")
    bad = sum(not finding.well for finding in findings)
    print_status("All is well." if not bad else f"{bad} of {len(findings)} checks failed.")
    raise typer.Exit(FAILED if bad else OK)


def examine(rom: Path | None, local: Path = LOCAL_CONNECTION) -> Iterator[CheckResult]:
    """All checks, the machine first."""
    yield python()
    yield from packages()
    yield from (program(name) for name in ("nats-server", "weed"))
    yield disk()
    yield ports()
    yield game(rom)
    try:
        saved = Connection.load(local)
    except CliError as problem:
        yield CheckResult("system", False, str(problem), f"rm {local}; zelda up")
        return
    if saved is None:
        yield CheckResult("system", True, "none runs here (`zelda up` starts one)")
        return
    yield api(saved)
    yield reach("store", saved, _ask_store)
    yield reach("bus", saved, _ask_bus)
    yield from judges(saved)


def python() -> CheckResult:
    """The interpreter's version."""
    seen = ".".join(map(str, sys.version_info[:3]))
    return CheckResult(
        "python", (3, 11) <= sys.version_info < (3, 13), seen, "install Python 3.11 or 3.12, then make setup"
    )


def packages() -> Iterator[CheckResult]:
    """Whether each service's libraries are installed."""
    for service, names in PACKAGES.items():
        missing = [name for name in names if find_spec(name) is None]
        seen = f"without {', '.join(missing)}" if missing else "complete"
        yield CheckResult(
            f"packages of {service}", not missing, seen, f"pip install 'zelda-rlaif[{service}]', or make setup"
        )


def program(name: str) -> CheckResult:
    """Whether a server's program is there."""
    try:
        return CheckResult(name, True, find_program(name))
    except StackError as error:
        return CheckResult(name, False, "not found", str(error))


def disk() -> CheckResult:
    """Room for a run's objects."""
    free = shutil.disk_usage(Path.cwd()).free
    fix = f"free {FREE_BYTES // 1024**3} GB here, or run in another directory"
    return CheckResult("disk", free >= FREE_BYTES, f"{free / 1024**3:.1f} GB free", fix)


def ports() -> CheckResult:
    """Free loopback ports for a local system."""
    try:
        given = PortAllocator()
        return CheckResult("ports", True, f"e.g. {[given.free() for _ in range(3)]} are free")
    except ValueError as error:
        return CheckResult("ports", False, str(error), "end other systems on this machine")


def game(rom: Path | None) -> CheckResult:
    """Whether a ROM is one that we know; without one there is Bramble."""
    from shared.errors import ZeldaError

    if rom is None:
        return CheckResult("rom", True, "none given: Bramble, our own game, needs none")
    from shared.game.games.oracle import identify_rom

    try:
        return CheckResult("rom", True, identify_rom(rom.read_bytes()).name)
    except (OSError, ZeldaError) as error:
        return CheckResult("rom", False, str(error), "give the original file, or play Bramble")


def api(saved: Connection) -> CheckResult:
    """Whether the coordinator answers with our token."""
    try:
        with open_client(saved) as client:
            number = len(client.get("/runs", limit=1000)["items"])
    except CliError as problem:
        return CheckResult(
            "coordinator", False, str(problem), f"zelda run logs coordinator; or restart: {LOCAL_CONNECTION} may be old"
        )
    return CheckResult("coordinator", True, f"{saved.url} answers, {number} runs")


def reach(name: str, saved: Connection, ask: Callable[[Connection], str]) -> CheckResult:
    """Whether the store or the bus of the local system answers."""
    from shared.errors import ZeldaError

    try:
        return CheckResult(name, True, ask(saved))
    except (ZeldaError, OSError, ValueError, KeyError) as error:  # a connection may name no store, or a wrong one
        return CheckResult(name, False, str(error), f"zelda run logs {name}; then start again with `zelda up`")


def _ask_store(saved: Connection) -> str:
    from cli.stack.connections import local_store

    asyncio.run(local_store(saved.settings).exists("models/probe"))
    return saved.settings["ZELDA_STORE__URL"]


def _ask_bus(saved: Connection) -> str:
    from cli.stack.connections import local_bus

    async def ask() -> str:
        bus = await local_bus(saved.settings)
        await bus.close()
        return saved.settings["ZELDA_BUS__URL"]

    return asyncio.run(ask())


def judges(saved: Connection) -> Iterator[CheckResult]:
    """Whether what the judges ask answers: the routes of the judges file, without one the rules judge."""
    file = saved.settings.get(JUDGES_FILE)
    if file is not None:
        yield from asyncio.run(_routes(Path(file)))
        return
    from cli.stack.probes import is_up

    url = saved.settings.get(JUDGE_URL)
    well = url is not None and asyncio.run(is_up(f"{url}/models"))
    yield CheckResult("judges", well, url or "no address is known", "zelda run logs rules-judge")


async def _routes(path: Path) -> list[CheckResult]:
    from services.judge.config import ConfigError, load_judges

    try:
        file = load_judges(path, "")
    except ConfigError as error:
        return [
            CheckResult("judges", False, str(error), "mend the file, then start again with `zelda up --judges FILE`")
        ]
    if not file.routes:
        return [CheckResult("judges", True, f"{path} names no route: they judge by rules")]
    asked = {name: {judge.model for judge in file.judges if judge.route == name} for name in file.routes}
    return [await _route(name, spec, asked[name]) for name, spec in file.routes.items()]


async def _route(name: str, spec: "RouteSpec", asked: Collection[str]) -> CheckResult:
    """Whether the route answers and serves the models that judges ask of it; a server need not say what it serves."""
    from services.judge.adapters.route import RouteClient
    from services.judge.ports import RouteUnavailable

    route, title = RouteClient(name, spec), f"judges' route {name}"
    fix = f"start its server, or correct route {name} in the judges file"
    try:
        served = await route.list_models()
    except RouteUnavailable as error:
        return CheckResult(title, False, f"{spec.url}: {error}", fix)
    finally:
        await route.close()
    if served and (missing := sorted(set(asked) - served.keys())):
        return CheckResult(
            title, False, f"{spec.url} serves {', '.join(sorted(served))}, not {', '.join(missing)}", fix
        )
    return CheckResult(
        title, True, f"{spec.url} answers" + ("" if served else ", and does not say which models it serves")
    )
