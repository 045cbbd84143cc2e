"""The `zelda` command: which parts it has, and which of them is loaded. `zelda --help` must answer in half a second,
so a part is imported only when it is called; the list of parts stands here.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Final

import typer

from cli.errors import MEANINGS

COMMANDS: Final = {
    "up": ("cli.commands.up", "Start bus, store, rules judge and the five services on this machine."),
    "demo": ("cli.commands.demo", "Play a short run from start to report, and leave nothing running."),
    "run": ("cli.commands.run", "Start, watch and stop runs."),
    "doctor": ("cli.commands.doctor", "Check this machine and the system, with a fix for each failure."),
    "epoch": ("cli.commands.epoch", "Train one single epoch, without judges."),
    "judge": ("cli.commands.judge", "Judge a run's segments again, or compare two judges."),
    "export": ("cli.commands.export", "Write segments as pictures, videos and data sets."),
    "study": ("cli.commands.study", "Compare ways of training over several seeds."),
    "dlq": ("cli.commands.dlq", "List, show, replay and drop dead letters."),
}
EPILOG: Final = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + "."


def build_app(argv: Sequence[str]) -> typer.Typer:
    """The command with the called part loaded; the others are there by name and help only."""
    app = typer.Typer(
        name="zelda",
        help="Reinforcement learning from AI feedback on Game Boy games.",
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    called = next((word for word in argv if not word.startswith("-")), None)
    for name, (module, text) in COMMANDS.items():
        part = import_module(module).app if name == called else _placeholder(text)
        app.add_typer(part, name=name)
    app.callback()(_root)
    return app


def _root() -> None:
    """Reinforcement learning from AI feedback on Game Boy games."""


def _placeholder(text: str) -> typer.Typer:
    part = typer.Typer(help=text)
    part.callback(invoke_without_command=True)(_root)
    part.info.help = text
    return part
