"""One system, or one study, in a directory: a second one would write into the first one's files, stores and secrets.

The kernel keeps the lock and lets it go when this process ends, however it ends: no stale lock is ever to be removed.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cli.errors import CONFLICT, CliError


@contextmanager
def locked_directory(root: Path, what: str = "system", instead: str = "use it") -> Iterator[None]:
    """Hold the directory for the time of the body; CliError with the process that runs there if another one has it.

    `what` runs there, and `instead` of starting another one a person may do that.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("a+", encoding="utf-8") as file:  # not "w": that would wipe the holder's number
        _take(file, root, what, instead)
        yield


def _take(file: IO[str], root: Path, what: str, instead: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        pid = file.read().strip() or "unknown"
        raise CliError(
            CONFLICT,
            f"A {what} runs in {root} already (process {pid}): {instead}, end it with ctrl-C, "
            "or start this one in another directory.",
        ) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
