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

from cli.client import LOCAL, open_client
from cli.console import data, line, say
from cli.exits import FAILED, OK, Quit
from cli.stack.brought import JUDGES
from cli.stack.layout import Connection
from cli.stack.ports import Ports
from cli.stack.process import StackError
from cli.stack.servers import binary
from cli.stack.services import JUDGE_URL

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
class Finding:
    """One check: what was looked at, whether it is well, what was seen, and what to do otherwise."""

    name: str
    well: bool
    seen: str
    fix: str = ""


@app.callback(invoke_without_command=True)
def doctor(
    rom: Annotated[Path | None, typer.Option(help="a game's ROM to recognise")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Check everything; exit 0 if all is well, else 1."""
    findings = list(examine(rom))
    if as_json:
        data([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            line(f"{'ok  ' if finding.well else 'FAIL'} {finding.name}: {finding.seen}")
            if not finding.well:
                line(f"     fix: {finding.fix}")
    bad = sum(not finding.well for finding in findings)
    say("All is well." if not bad else f"{bad} of {len(findings)} checks failed.")
    raise typer.Exit(FAILED if bad else OK)


def examine(rom: Path | None, local: Path = LOCAL) -> Iterator[Finding]:
    """All checks, the machine first."""
    yield python()
    yield from packages()
    yield from (program(name) for name in ("nats-server", "weed"))
    yield disk()
    yield ports()
    yield game(rom)
    try:
        saved = Connection.load(local)
    except Quit as problem:
        yield Finding("system", False, str(problem), f"rm {local}; zelda up")
        return
    if saved is None:
        yield Finding("system", True, "none runs here (`zelda up` starts one)")
        return
    yield api(saved)
    yield reach("store", saved, _ask_store)
    yield reach("bus", saved, _ask_bus)
    yield from judges(saved)


def python() -> Finding:
    """The interpreter's version."""
    seen = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "python", (3, 11) <= sys.version_info < (3, 13), seen, "install Python 3.11 or 3.12, then make setup"
    )


def packages() -> Iterator[Finding]:
    """Whether each service's libraries are installed."""
    for service, names in PACKAGES.items():
        missing = [name for name in names if find_spec(name) is None]
        seen = f"without {', '.join(missing)}" if missing else "complete"
        yield Finding(
            f"packages of {service}", not missing, seen, f"pip install 'zelda-rlaif[{service}]', or make setup"
        )


def program(name: str) -> Finding:
    """Whether a server's program is there."""
    try:
        return Finding(name, True, binary(name))
    except StackError as error:
        return Finding(name, False, "not found", str(error))


def disk() -> Finding:
    """Room for a run's objects."""
    free = shutil.disk_usage(Path.cwd()).free
    fix = f"free {FREE_BYTES // 1024**3} GB here, or run in another directory"
    return Finding("disk", free >= FREE_BYTES, f"{free / 1024**3:.1f} GB free", fix)


def ports() -> Finding:
    """Free loopback ports for a local system."""
    try:
        given = Ports()
        return Finding("ports", True, f"e.g. {[given.free() for _ in range(3)]} are free")
    except ValueError as error:
        return Finding("ports", False, str(error), "end other systems on this machine")


def game(rom: Path | None) -> Finding:
    """Whether a ROM is one that we know; without one there is Bramble."""
    from shared.errors import ZeldaError

    if rom is None:
        return Finding("rom", True, "none given: Bramble, our own game, needs none")
    from shared.game.games.oracle import identify_rom

    try:
        return Finding("rom", True, identify_rom(rom.read_bytes()).name)
    except (OSError, ZeldaError) as error:
        return Finding("rom", False, str(error), "give the original file, or play Bramble")


def api(saved: Connection) -> Finding:
    """Whether the coordinator answers with our token."""
    try:
        with open_client(saved) as client:
            number = len(client.get("/runs", limit=1000)["items"])
    except Quit as problem:
        return Finding(
            "coordinator", False, str(problem), f"zelda run logs coordinator; or restart: {LOCAL} may be old"
        )
    return Finding("coordinator", True, f"{saved.url} answers, {number} runs")


def reach(name: str, saved: Connection, ask: Callable[[Connection], str]) -> Finding:
    """Whether the store or the bus of the local system answers."""
    from shared.errors import ZeldaError

    try:
        return Finding(name, True, ask(saved))
    except (ZeldaError, OSError, ValueError, KeyError) as error:  # a connection may name no store, or a wrong one
        return Finding(name, False, str(error), f"zelda run logs {name}; then start again with `zelda up`")


def _ask_store(saved: Connection) -> str:
    from cli.stack.reach import store_of

    asyncio.run(store_of(saved.settings).exists("models/probe"))
    return saved.settings["ZELDA_STORE__URL"]


def _ask_bus(saved: Connection) -> str:
    from cli.stack.reach import bus_of

    async def ask() -> str:
        bus = await bus_of(saved.settings)
        await bus.close()
        return saved.settings["ZELDA_BUS__URL"]

    return asyncio.run(ask())


def judges(saved: Connection) -> Iterator[Finding]:
    """Whether what the judges ask answers: the routes of the judges file, without one the rules judge."""
    file = saved.settings.get(JUDGES)
    if file is not None:
        yield from asyncio.run(_routes(Path(file)))
        return
    from cli.stack.probes import answers

    url = saved.settings.get(JUDGE_URL)
    well = url is not None and asyncio.run(answers(f"{url}/models"))
    yield Finding("judges", well, url or "no address is known", "zelda run logs rules-judge")


async def _routes(path: Path) -> list[Finding]:
    from services.judge.config import ConfigError, load_judges

    try:
        file = load_judges(path, "")
    except ConfigError as error:
        return [Finding("judges", False, str(error), "mend the file, then start again with `zelda up --judges FILE`")]
    if not file.routes:
        return [Finding("judges", True, f"{path} names no route: they judge by rules")]
    asked = {name: {judge.model for judge in file.judges if judge.route == name} for name in file.routes}
    return [await _route(name, spec, asked[name]) for name, spec in file.routes.items()]


async def _route(name: str, spec: "RouteSpec", asked: Collection[str]) -> Finding:
    """Whether the route answers and serves the models that judges ask of it; a server need not say what it serves."""
    from services.judge.adapters.route import RouteClient
    from services.judge.ports import RouteUnavailable

    route, title = RouteClient(name, spec), f"judges' route {name}"
    fix = f"start its server, or correct route {name} in the judges file"
    try:
        served = await route.list_models()
    except RouteUnavailable as error:
        return Finding(title, False, f"{spec.url}: {error}", fix)
    finally:
        await route.close()
    if served and (missing := sorted(set(asked) - served.keys())):
        return Finding(title, False, f"{spec.url} serves {', '.join(sorted(served))}, not {', '.join(missing)}", fix)
    return Finding(title, True, f"{spec.url} answers" + ("" if served else ", and does not say which models it serves"))
