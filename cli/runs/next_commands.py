"""Suggests which commands make sense after this one."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cli.client import named_url
from cli.console import print_status

LOCAL_ONLY: Final = frozenset({"report", "run logs"})
"""Commands that read the store and the log files of this directory's system: they take no address."""
WITHOUT_SYSTEM: Final = LOCAL_ONLY | {"run show"}
"""Commands that work while no system runs: they read what it left."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How commands find the system: `options` as the user gave them; not `local` if a URL names another system.

    Not `up` if no system runs, so that most commands need one first.
    """

    options: str = ""
    local: bool = True
    up: bool = True

    @classmethod
    def of(cls, url: str | None, token_file: Path | None, *, up: bool = True) -> Self:
        """The reach of a command with these options."""
        given = (("--url", url), ("--token-file", token_file))
        options = "".join(f" {option} {shlex.quote(str(value))}" for option, value in given if value is not None)
        return cls(options, local=url is None and named_url() is None, up=up)


HERE: Final = Reach()


def next_commands(run: str, state: str, reach: Reach = HERE, after: str = "") -> list[str]:
    """The commands that make sense for a run in this state, without the command that was called, e.g. `run show`."""
    return [_line(command, argument, reach) for command, argument in _fitting(run, state, reach, after)]


def print_next(run: str, state: str, reach: Reach = HERE, after: str = "") -> None:
    """Print the commands that make sense next, if there are any. Without a system, some come after `zelda up`."""
    fitting = _fitting(run, state, reach, after)
    ready = [_line(*one, reach) for one in fitting if reach.up or one[0] in WITHOUT_SYSTEM]
    later = [_line(*one, reach) for one in fitting if not reach.up and one[0] not in WITHOUT_SYSTEM]
    if later:
        ready.append(f"zelda up, then {' or '.join(later)}")
    if ready:
        print_status(f"Next:  {'    '.join(ready)}")


def _fitting(run: str, state: str, reach: Reach, after: str) -> list[tuple[str, str]]:
    """Commands and their arguments."""
    found = {
        "finished": [("run show", run), ("report", run)],
        "stopped": [("run resume", run), ("run show", run)],
        "failed": [("run logs", "trainer"), ("run resume", run)],
    }.get(state, [("run watch", run), ("run stop", run)])
    return [one for one in found if one[0] != after and (reach.local or one[0] not in LOCAL_ONLY)]


def _line(command: str, argument: str, reach: Reach) -> str:
    return f"zelda {command} {argument}{'' if command in LOCAL_ONLY else reach.options}"
