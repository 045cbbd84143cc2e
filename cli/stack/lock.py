"""Exclusive locks: on a directory, because two systems or studies must not share files, stores and secrets; on a file.

The kernel holds the lock and releases it when this process exits, even when it is killed: locks never go stale.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from cli.errors import CONFLICT, CliError

SYSTEM: Final = ("system", "use it")
"""What holds the lock of a directory, and what the user can do instead of a second one."""


@contextmanager
def locked_directory(root: Path, holder: str = SYSTEM[0], advice: str = SYSTEM[1]) -> Iterator[None]:
    """Lock the directory during the body; CliError names the process that holds the lock.

    `holder` is what runs in the directory; `advice` is what the user can do instead of starting another one.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("a+", encoding="utf-8") as file:  # "w" would erase the holder's process id
        _lock(file, root, holder, advice)
        yield


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Wait until no other command changes the file, and keep others waiting during the body.

    For a body that reads the file, adds something and writes it: what others add meanwhile would be lost.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f"{path.name}.lock")
    while True:
        with lock.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if not _is_at(held, lock):  # its former holder removed it: another one may have created it again
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _is_at(file: IO[str], path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _lock(file: IO[str], root: Path, holder: str, advice: str) -> None:
    """Lock the open file, and write who holds it: the process id, then `holder` and `advice` if it is no system."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        pid, *kind = file.read().splitlines() or ["unknown"]
        holder, advice = kind if len(kind) == 2 else SYSTEM
        raise CliError(
            CONFLICT,
            f"A {holder} already runs in {root} (process {pid}): {advice}, stop it with ctrl-C, "
            "or choose another directory.",
        ) from error
    file.truncate(0)
    about = () if (holder, advice) == SYSTEM else (holder, advice)
    file.write("".join(f"{line}\n" for line in (os.getpid(), *about)))
    file.flush()
