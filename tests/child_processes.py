"""Child processes of a process, as tests look for them in /proc. A process may end while it is read."""

import os
from pathlib import Path


def children_running(module: str, parent: int | None = None) -> list[int]:
    """Ids of the children of a process (default: this one) that already run `python -m module`."""
    tasks = Path(f"/proc/{parent or os.getpid()}/task").glob("*/children")
    found = [int(pid) for task in tasks for pid in _read(task).split()]
    return [pid for pid in found if module in _read(Path(f"/proc/{pid}/cmdline")).split("\0")]


def _read(file: Path) -> str:
    """The file's text; empty if its process has ended."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
