"""`zelda dlq`: the messages that no service could handle, with the reason; replay them once it is mended, or drop them.

Replaying is safe to repeat: services find the commit object of what was done before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, TypeVar

import typer

from cli.console import print_json, print_line, print_status, print_table
from cli.errors import DENIED, FAILED, NOT_FOUND, UNREACHABLE, USAGE, CliError
from cli.service_settings import load_settings
from shared.bus.port import DeadLetter, DeadLetters
from shared.config.settings import BusOnlySettings, BusSettings
from shared.errors import Fatal, Permanent, Transient

app = typer.Typer(help="List, show, replay and drop dead letters.", no_args_is_help=True)
Numbers = Annotated[list[int] | None, typer.Argument(help="as `zelda dlq list` shows them", metavar="[NUMBER]...")]
All = Annotated[bool, typer.Option("--all", help="every dead letter")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
MANY = 10_000
T = TypeVar("T")
Action = Callable[[DeadLetters, int], Awaitable[None]]


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=MANY, help="show at most so many, oldest first")] = 100,
    as_json: Json = False,
) -> None:
    """Show the dead letters, the oldest first."""
    letters = _on_bus(lambda dead: dead.list(limit))
    if as_json:
        print_json([_plain(letter) for letter in letters])
        return
    rows = [(str(x.number), f"{x.time:%Y-%m-%d %H:%M:%S}", x.consumer, str(x.attempt), x.reason) for x in letters]
    print_table("dead letters", ("number", "time", "consumer", "deliveries", "reason"), rows)


@app.command()
def show(number: Annotated[int, typer.Argument(min=1)], as_json: Json = False) -> None:
    """Show one dead letter with its message."""
    letter = _on_bus(lambda dead: dead.get(number))
    plain = _plain(letter) | {"message": letter.raw.decode("utf-8", "backslashreplace")}
    if as_json:
        print_json(plain)
        return
    for name, value in plain.items():
        print_line(f"{name}: {value}")


@app.command()
def replay(numbers: Numbers = None, all_: All = False, as_json: Json = False) -> None:
    """Publish messages again and drop their dead letters."""
    _each(numbers, all_, as_json, "replayed", lambda dead, number: dead.replay(number))


@app.command()
def drop(numbers: Numbers = None, all_: All = False, as_json: Json = False) -> None:
    """Remove dead letters for good."""
    _each(numbers, all_, as_json, "dropped", lambda dead, number: dead.drop(number))


def _each(
    numbers: list[int] | None,
    all_: bool,
    as_json: bool,
    done: str,
    action: Action,
) -> None:
    if bool(numbers) == all_:
        raise CliError(USAGE, "Give the numbers of dead letters, or --all.")

    async def work(dead: DeadLetters) -> tuple[list[int], int]:
        chosen = [letter.number for letter in await dead.list(MANY)] if all_ else list(numbers or [])
        return await _treated(dead, chosen, action), len(chosen)

    treated, of = _on_bus(work)
    print_json({done: treated}) if as_json else print_line(f"{done}: {len(treated)}")
    if len(treated) < of:
        raise CliError(
            FAILED, f"{of - len(treated)} of {of} dead letters could not be {done}: the reasons stand above."
        )


async def _treated(dead: DeadLetters, chosen: Sequence[int], action: Action) -> list[int]:
    """The numbers with which it worked. Of several, one that never will holds up none of the others and is told."""
    done = []
    for number in chosen:
        try:
            await action(dead, number)
        except Permanent as error:
            if len(chosen) == 1:
                raise
            print_status(f"{error}.")
        else:
            done.append(number)
    return done


def _plain(letter: DeadLetter) -> dict[str, Any]:
    names = ("number", "time", "consumer", "subject", "attempt", "reason")
    return {name: getattr(letter, name) for name in names}


def _on_bus(work: Callable[[DeadLetters], Awaitable[T]]) -> T:
    bus = load_settings(BusOnlySettings).bus
    try:
        return asyncio.run(_connected(bus, work))
    except Permanent as error:
        raise CliError(NOT_FOUND, str(error)) from error
    except Fatal as error:
        raise CliError(DENIED, str(error)) from error
    except Transient as error:
        raise CliError(UNREACHABLE, f"{error}: is ZELDA_BUS__URL right, and the system up?") from error


async def _connected(at: BusSettings, work: Callable[[DeadLetters], Awaitable[T]]) -> T:
    from shared.bus.jetstream.bus import connect
    from shared.bus.jetstream.dead_letters import NatsDeadLetters
    from shared.bus.provision import IDENTITY

    if at.url == "memory://":
        raise Permanent("a memory:// bus keeps no dead letters: name the real one in ZELDA_BUS__URL")
    bus = await connect(at, IDENTITY)  # its permissions, because no service may read dead letters
    try:
        return await work(NatsDeadLetters(bus))
    finally:
        await bus.close()
