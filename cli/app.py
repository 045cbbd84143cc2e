"""The command tree of `zelda`. Only the called command is imported, so that `zelda --help` answers in half a second."""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import typer
from typer.main import get_command

from cli.errors import MEANINGS
from cli.usage import name_values

COMMANDS: Final = {
    "up": ("cli.commands.up", "Start the whole system on this machine."),
    "demo": ("cli.commands.demo", "Play a short run, from start to report."),
    "run": ("cli.commands.run", "Start, watch, stop and resume runs."),
    "open": ("cli.page.command", "Open the live page of the running system in a browser."),
    "report": ("cli.commands.report", "Write the report of a run, also while no system runs."),
    "trace": ("cli.trace.command", "Follow a segment through rewards, reward models, votes and play."),
    "doctor": ("cli.commands.doctor", "Check this machine and the running system."),
    "epoch": ("cli.commands.epoch", "Train a single epoch, without judges."),
    "judge": ("cli.commands.judge", "Judge a run's segments again, or compare two judges."),
    "rewardmodel": ("cli.commands.rewardmodel", "Train the reward model of an epoch, without the service."),
    "policy": ("cli.commands.policy", "Watch a trained policy play, evaluate it, or export it."),
    "states": ("cli.saved_states.command", "Save, list and show states where runs begin episodes."),
    "export": ("cli.commands.export", "Export segments as frames, videos and data sets."),
    "study": ("cli.commands.study", "Compare ways of training over several seeds."),
    "explore": ("cli.commands.explore", "Fill an archive of states by exploring, without a network."),
    "dlq": ("cli.commands.dlq", "List, show, replay and drop dead letters."),
}
COMPLETED_LINE: Final = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")  # of bash; of zsh and fish
EPILOG: Final = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + "."


def build_command(argv: Sequence[str]) -> Any:
    """Build the command line of these arguments, with readable usage lines."""
    command = get_command(build_app(argv))
    name_values(command)
    return command


def build_app(argv: Sequence[str]) -> typer.Typer:
    """Build the command tree: the called command is loaded, all others are placeholders with a help text."""
    app = typer.Typer(
        name="zelda",
        help="Reinforcement learning from AI feedback on Game Boy games.",
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
    )
    completed = next(filter(None, map(os.environ.get, COMPLETED_LINE)), "")  # the shell completes a command line
    words = argv or completed.split()[1:]
    called = next((word for word in words if not word.startswith("-")), None)
    for name, (module, text) in COMMANDS.items():
        part = import_module(module).app if name == called else _placeholder(text)
        metavar = None if part.registered_commands else ""  # a command without subcommands takes no COMMAND
        app.add_typer(part, name=name, subcommand_metavar=metavar)
    app.callback()(_root)
    return app


def _root() -> None:
    """Reinforcement learning from AI feedback on Game Boy games."""


def _placeholder(text: str) -> typer.Typer:
    part = typer.Typer(help=text)
    part.callback(invoke_without_command=True)(_root)
    part.info.help = text
    return part
