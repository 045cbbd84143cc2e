"""Errors of the game side, within the project's tree (shared/errors.py).

Permanent
├── UnknownRom       a ROM image without a RAM table, or an unknown world
└── ReplayMismatch   a replay gives another RAM than the recording: other emulator, other ROM or damage
Transient
└── EmulatorFault    the emulator failed
"""

from typing import Self

from shared.errors import Permanent, Transient


class UnknownRom(Permanent):
    """No RAM table fits this ROM image, or the world is unknown."""


class ReplayMismatch(Permanent):
    """Equal start and actions gave another RAM: another emulator version, another ROM or a damaged recording."""

    def __init__(self, message: str, expected: str, actual: str) -> None:
        super().__init__(f"replay: {message}")
        self.expected = expected
        self.actual = actual

    @classmethod
    def of_ram(cls, moment: str, expected: str, actual: str) -> Self:
        """RAM differs at the start or at the end."""
        return cls(f"RAM at the {moment} is {actual}, the recording has {expected}", expected, actual)

    @classmethod
    def of_machine(cls, part: str, expected: str, actual: str) -> Self:
        """Emulator or ROM differ; the RAM is not compared."""
        return cls(f"recorded with {part} {expected}, but this is {actual}", expected, actual)


class EmulatorFault(Transient):
    """The emulator raised or stopped."""
