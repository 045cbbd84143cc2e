"""The newest lines of the log files of a local system. Never reads another file, and never a whole one."""

import json
from pathlib import Path
from typing import Final

from shared.store.port import NotFound

MAX_BYTES: Final = 2 * 1024 * 1024  # read from the end of a file: logs grow for days
MAX_LINE: Final = 4_000  # characters; a traceback stands in one line


class ServiceLogs:
    """The files `PROCESS.log` of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def processes(self) -> list[str]:
        """The processes that have a log, by name."""
        return sorted(file.stem for file in self._directory.glob("*.log"))

    def tail(self, process: str, lines: int, run: str | None = None) -> list[str]:
        """The last `lines` lines, oldest first, of what the end of the log holds; NotFound without such a log.

        With `run`, lines about other runs are left out. Lines that name no run stay: a crash names none.
        """
        if process not in self.processes():  # also keeps a path such as ../../secrets out
            raise NotFound(f"There is no log of {process!r}: choose from {', '.join(self.processes()) or 'none'}")
        found = _end_of(self._directory / f"{process}.log")
        wanted = found if run is None else [line for line in found if _run_of(line) in (None, run)]
        return [line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…" for line in wanted[-lines:]]


def _end_of(file: Path) -> list[str]:
    """The complete lines within the last MAX_BYTES bytes."""
    with file.open("rb") as log:
        size = log.seek(0, 2)
        start = log.seek(max(0, size - MAX_BYTES))
        lines = log.read(MAX_BYTES).decode("utf-8", "replace").splitlines()
    return lines[1:] if start else lines


def _run_of(line: str) -> str | None:
    """The run that a line is about; None if it names none."""
    try:
        fields = json.loads(line)
    except ValueError:  # a library's own text, or one line of a traceback
        return None
    run = fields.get("run") if isinstance(fields, dict) else None
    return run if isinstance(run, str) else None
