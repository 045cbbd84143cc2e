"""Errors of the game side, within the project's tree (shared/errors.py).

Permanent
├── UnknownRom       a ROM image that no map of the RAM fits
└── ReplayMismatch   a replay ended in another RAM than the recording
Transient
└── EmulatorFault    the emulator failed; what it held is kept for a bug report
"""

from pathlib import Path

from shared.errors import Permanent, Transient


class UnknownRom(Permanent):
    """No RAM map fits this ROM image."""


class ReplayMismatch(Permanent):
    """The same start and the same actions gave another RAM: another emulator version, ROM or a damaged record."""

    def __init__(self, what: str, expected: str, actual: str) -> None:
        super().__init__(f"replay: RAM at the {what} is {actual}, the record says {expected}")
        self.expected = expected
        self.actual = actual


class EmulatorFault(Transient):
    """The emulator raised or stopped. `report` is the folder with what is needed to see it again, if it was kept."""

    def __init__(self, message: str, report: Path | None = None) -> None:
        where = f"; kept for a report in {report}" if report else ""
        super().__init__(message + where)
        self.report = report
