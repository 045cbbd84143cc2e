"""An exclusive lock on a directory: two systems, or two studies, must not share files, stores and secrets.

The kernel holds the lock and releases it when this process exits, even when it is killed: locks never go stale.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cli.errors import CONFLICT, CliError


@contextmanager
def locked_directory(root: Path, holder: str = "system", advice: str = "use it") -> Iterator[None]:
    """Lock the directory during the body; CliError names the process that holds the lock.

    `holder` is what runs in the directory; `advice` is what the user can do instead of starting another one.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("a+", encoding="utf-8") as file:  # "w" would erase the holder's process id
        _lock(file, root, holder, advice)
        yield


def _lock(file: IO[str], root: Path, holder: str, advice: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        pid = file.read().strip() or "unknown"
        raise CliError(
            CONFLICT,
            f"A {holder} already runs in {root} (process {pid}): {advice}, stop it with ctrl-C, "
            "or choose another directory.",
        ) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
