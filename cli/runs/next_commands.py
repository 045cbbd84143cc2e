"""Suggests which commands make sense after this one."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cli.client import named_url
from cli.console import print_status

LOCAL_ONLY: Final = frozenset({"report", "run logs"})
"""Commands that read the store and the log files of this directory's system: they take no address."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How commands find the system: `options` as the user gave them; not `local` if a URL names another system."""

    options: str = ""
    local: bool = True

    @classmethod
    def of(cls, url: str | None, token_file: Path | None) -> Self:
        """The reach of a command with these options."""
        given = (("--url", url), ("--token-file", token_file))
        options = "".join(f" {option} {shlex.quote(str(value))}" for option, value in given if value is not None)
        return cls(options, local=url is None and named_url() is None)


HERE: Final = Reach()


def next_commands(run: str, state: str, reach: Reach = HERE, after: str = "") -> list[str]:
    """The commands that make sense for a run in this state, without the command that was called, e.g. `run show`."""
    found = {
        "finished": [("run show", run), ("report", run)],
        "stopped": [("run resume", run), ("run show", run)],
        "failed": [("run logs", "trainer"), ("run resume", run)],
    }.get(state, [("run watch", run), ("run stop", run)])
    return [
        f"zelda {command} {argument}{'' if command in LOCAL_ONLY else reach.options}"
        for command, argument in found
        if command != after and (reach.local or command not in LOCAL_ONLY)
    ]


def print_next(run: str, state: str, reach: Reach = HERE, after: str = "") -> None:
    """Print the commands that make sense next, if there are any."""
    if commands := next_commands(run, state, reach, after):
        print_status(f"Next:  {'    '.join(commands)}")
