"""A game as the platform plays it: ROM, capabilities, milestones."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Milestone:
    """One step of the game's story; `reached` reads a RAM image. Truth for measuring, never shown to judges."""

    name: str
    reached: Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Game:
    """A ROM and everything that must be known to play it."""

    name: str
    rom: bytes
    capabilities: frozenset[str]
    milestones: tuple[Milestone, ...] = ()
    boot_frames: int = 0
    needs_sound: bool = False
    updates_after_vblank: bool = False
    checks_hardware: bool = False
    start: bytes | None = None
    """A saved state from which the true start is searched, instead of power-on (see emulator/start.py)."""

    @property
    def digest(self) -> str:
        """SHA-256 of the ROM image, as manifests name it."""
        return hashlib.sha256(self.rom).hexdigest()

    def reached(self, image: bytes) -> int:
        """How many milestones hold in a RAM image."""
        return sum(milestone.reached(image) for milestone in self.milestones)
