"""Which game a ROM is, what it can do, and how it is driven. Recognised by hash: a wrong map would read nonsense.

The RAM map of Oracle of Seasons holds for one image only, the US one; a user brings it, it is never part of this
project. Bramble's ROMs are made here from a world's text. Any other image is refused.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from shared.game import capabilities
from shared.game.errors import UnknownRom

ORACLE_MD5: Final = "f2dc6c4e093e4f8c6cbea80e8dbd62cb"
ORACLE: Final = "oracle-of-seasons"


@dataclass(frozen=True, slots=True)
class Milestone:
    """One step of the way to the end; `reached` looks at a RAM image. Truth for measuring, never shown to judges."""

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
    """Saved state from which the true start is sought instead of power-on (see start.py)."""

    @property
    def digest(self) -> str:
        """SHA-256 of the ROM image, as manifests name it."""
        return hashlib.sha256(self.rom).hexdigest()

    def reached(self, image: bytes) -> int:
        """How many milestones hold in a RAM image."""
        return sum(milestone.reached(image) for milestone in self.milestones)


def open_game(
    game: str = "bramble",
    *,
    world: str = "vale",
    difficulty: str = "normal",
    seed: int = 0,
    rom: Path | None = None,
    start: Path | None = None,
) -> Game:
    """The game of a run's configuration; `rom` is the user's own image where the game needs one, `start` a saved state
    of it where the hero can walk. Bramble needs neither and heeds neither.

    Raises UnknownRom for an image that is not the one the map was made for, or a world that there is not.
    """
    if game == "bramble":
        from shared.game.bramble_game import bramble_game  # only this game needs the world builder

        return bramble_game(world, difficulty, seed)
    if game == ORACLE:
        if rom is None:
            raise UnknownRom(
                f"{ORACLE} needs your own ROM image: name the .gbc file with --rom (`zelda up --rom FILE`), "
                "on a cluster with the chart's values rom.*"
            )
        return replace(recognise(rom.read_bytes()), start=start.read_bytes() if start else None)
    raise UnknownRom(f"no game {game!r}: known are bramble and {ORACLE}")


def recognise(rom: bytes) -> Game:
    """The game of a ROM image from outside, by its hash."""
    found = hashlib.md5(rom, usedforsecurity=False).hexdigest()
    if found != ORACLE_MD5:
        raise UnknownRom(f"unknown ROM with MD5 {found}: known is {ORACLE_MD5} ({ORACLE}, US)")
    from shared.game.oracle_game import MILESTONES

    return Game(
        name=ORACLE,
        rom=rom,
        capabilities=capabilities.every(),
        milestones=MILESTONES,
        boot_frames=900,
        needs_sound=True,
        updates_after_vblank=True,
    )
