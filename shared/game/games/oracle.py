"""Oracle of Seasons: recognised by its hash, with the first milestones of its story as bits of its save block.

The RAM table holds for one image only, the US one. The user provides it; it is never part of this project. Any other
image is refused, because a wrong table would read nonsense.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from shared.game.errors import UnknownRom
from shared.game.games.game import Game, Milestone
from shared.game.games.registry import GameRequest
from shared.game.ram import capabilities
from shared.game.ram.variables import has_bit, read, read_number

ORACLE_MD5: Final = "f2dc6c4e093e4f8c6cbea80e8dbd62cb"
ORACLE: Final = "oracle-of-seasons"
BOOT_FRAMES: Final = 900  # from power-on until the game has set up its memory

_OVERWORLD, _GROUP4 = "room_flags_overworld", "room_flags_group4"


def _room_bit(image: bytes, table: str, room: int, mask: int) -> bool:
    flags = read(image, table)
    return isinstance(flags, bytes) and bool(flags[room] & mask)


def _essence(number: int) -> Callable[[bytes], bool]:
    return lambda image: bool(read_number(image, "essences") >> (number - 1) & 1)


MILESTONES: Final = (
    Milestone("intro done", lambda image: has_bit(image, "global_flags", 0x0A)),
    Milestone("sword", lambda image: has_bit(image, "treasure_flags", 0x05)),
    Milestone("gnarled key given", lambda image: has_bit(image, "global_flags", 0x18)),
    Milestone("gnarled key held", lambda image: has_bit(image, "treasure_flags", 0x42)),
    Milestone("first dungeon unlocked", lambda image: _room_bit(image, _OVERWORLD, 0x96, 0x80)),
    Milestone("first dungeon entered", lambda image: _room_bit(image, _GROUP4, 0x1C, 0x10)),
    Milestone("first miniboss beaten", lambda image: _room_bit(image, _GROUP4, 0x0B, 0x80)),
    Milestone("first boss beaten", lambda image: _room_bit(image, _GROUP4, 0x12, 0x80)),
    *(Milestone(f"essence {number}", _essence(number)) for number in range(1, 9)),
)


def oracle_game(request: GameRequest) -> Game:
    """The game of the user's own ROM; raise UnknownRom without one, or for another image."""
    if request.rom is None:
        raise UnknownRom(
            f"{ORACLE} needs your own ROM image: name the .gbc file with --rom (`zelda up --rom FILE`) or "
            "ZELDA_ROM__FILE, on a cluster with the chart's values rom.*"
        )
    return replace(identify_rom(request.rom.read_bytes()), start=request.start.read_bytes() if request.start else None)


def identify_rom(rom: bytes) -> Game:
    """The game of a ROM image from outside, identified by its hash."""
    found = hashlib.md5(rom, usedforsecurity=False).hexdigest()
    if found != ORACLE_MD5:
        raise UnknownRom(f"unknown ROM with MD5 {found}: use the one with MD5 {ORACLE_MD5} ({ORACLE}, US)")
    return Game(
        name=ORACLE,
        rom=rom,
        capabilities=capabilities.all_capabilities(),
        milestones=MILESTONES,
        boot_frames=BOOT_FRAMES,
        needs_sound=True,
        updates_after_vblank=True,
    )
