"""`zelda dlq`: the messages that no service could handle. Replay them after fixing the reason, or drop them.

Replaying is idempotent: services find the commit object of work that is already done.
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
Numbers = Annotated[list[int] | None, typer.Argument(help="numbers from `zelda dlq list`", metavar="NUMBER")]
All = Annotated[bool, typer.Option("--all", help="every dead letter")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
MANY = 10_000
T = TypeVar("T")
Action = Callable[[DeadLetters, int], Awaitable[None]]


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=MANY, help="maximum number of dead letters to show")] = 100,
    as_json: Json = False,
) -> None:
    """List the dead letters, oldest first."""
    letters = _on_bus(lambda dead: dead.list(limit))
    if as_json:
        print_json([_plain(letter) for letter in letters])
        return
    if not letters:
        print_status("There are no dead letters: every message was handled.")
        return
    rows = [(str(x.number), f"{x.time:%Y-%m-%d %H:%M:%S}", x.consumer, str(x.attempt), x.reason) for x in letters]
    print_table("dead letters", ("number", "time", "consumer", "deliveries", "reason"), rows)


@app.command()
def show(
    number: Annotated[int, typer.Argument(min=1, help="number from `zelda dlq list`", metavar="NUMBER")],
    as_json: Json = False,
) -> None:
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
    """Publish the messages again and remove their dead letters."""
    _apply(numbers, all_, as_json, "replayed", lambda dead, number: dead.replay(number))


@app.command()
def drop(numbers: Numbers = None, all_: All = False, as_json: Json = False) -> None:
    """Remove dead letters permanently."""
    _apply(numbers, all_, as_json, "dropped", lambda dead, number: dead.drop(number))


def _apply(
    numbers: list[int] | None,
    all_: bool,
    as_json: bool,
    done: str,
    action: Action,
) -> None:
    if bool(numbers) == all_:
        raise CliError(USAGE, "Name the numbers of dead letters, or use --all.")

    async def work(dead: DeadLetters) -> tuple[list[int], int]:
        chosen = [letter.number for letter in await dead.list(MANY)] if all_ else list(numbers or [])
        return await _apply_to_each(dead, chosen, action), len(chosen)

    handled, total = _on_bus(work)
    print_json({done: handled}) if as_json else print_line(f"{done}: {len(handled)}")
    if len(handled) < total:
        raise CliError(
            FAILED, f"{total - len(handled)} of {total} dead letters could not be {done}: the reasons are listed above."
        )


async def _apply_to_each(dead: DeadLetters, chosen: Sequence[int], action: Action) -> list[int]:
    """Apply the action to each number and return the successful ones. Failures of several are printed and skipped."""
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
        raise CliError(UNREACHABLE, f"{error}: check ZELDA_BUS__URL, and that the system runs.") from error


async def _connected(at: BusSettings, work: Callable[[DeadLetters], Awaitable[T]]) -> T:
    from shared.bus.jetstream.bus import connect
    from shared.bus.open import open_dead_letters
    from shared.bus.provision import IDENTITY

    if at.url == "memory://":
        raise Permanent("a memory:// bus keeps no dead letters: set ZELDA_BUS__URL to a real bus")
    bus = await connect(at, IDENTITY)  # this identity may read dead letters; no service may
    try:
        return await work(open_dead_letters(bus))
    finally:
        await bus.close()
