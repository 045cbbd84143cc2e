"""Errors of the game side, within the project's tree (shared/errors.py).

Permanent
├── UnknownRom       a ROM image that no map of the RAM fits, or a world that there is not
└── ReplayMismatch   a replay ended in another RAM than the recording, or would: emulator or ROM is another one
Transient
└── EmulatorFault    the emulator failed; what it held is kept for a bug report
"""

from pathlib import Path
from typing import Self

from shared.errors import Permanent, Transient


class UnknownRom(Permanent):
    """No RAM map fits this ROM image, or Bramble has no such world."""


class ReplayMismatch(Permanent):
    """The same start and the same actions gave another RAM: another emulator version, ROM or a damaged record."""

    def __init__(self, message: str, expected: str, actual: str) -> None:
        super().__init__(f"replay: {message}")
        self.expected = expected
        self.actual = actual

    @classmethod
    def of_ram(cls, moment: str, expected: str, actual: str) -> Self:
        """RAM differs at the start or at the end."""
        return cls(f"RAM at the {moment} is {actual}, the record says {expected}", expected, actual)

    @classmethod
    def of_machine(cls, part: str, expected: str, actual: str) -> Self:
        """Emulator or ROM is another one: the RAM is not even compared."""
        return cls(f"recorded with {part} {expected}, here is {actual}", expected, actual)


class EmulatorFault(Transient):
    """The emulator raised or stopped. `report` is the folder with what is needed to see it again, if it was kept."""

    def __init__(self, message: str, report: Path | None = None) -> None:
        where = f"; kept for a report in {report}" if report else ""
        super().__init__(message + where)
        self.report = report
