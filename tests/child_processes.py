"""Processes below another one, as tests look for them in /proc. A process may end while it is read."""

import asyncio
import os
from pathlib import Path

from cli.stack.port_owner import family


def command_of(pid: int) -> list[str]:
    """The program and the arguments of a process; empty texts if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return [""]


def descendants_running(module: str, parent: int | None = None) -> list[int]:
    """Ids of the processes below a process (default: this one) that already run `python -m module`."""
    top = parent or os.getpid()
    return [pid for pid in family(top) if pid != top and module in command_of(pid)]


async def descendant_running(module: str, parent: int | None = None) -> int:
    """Wait for the first of them. Raises TimeoutError if there is none within half a minute."""
    async with asyncio.timeout(30):
        while not (found := descendants_running(module, parent)):  # noqa: ASYNC110 - a process has no event to offer
            await asyncio.sleep(0.02)
    return found[0]
