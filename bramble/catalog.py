"""Worlds by name: those that come with the game, and `wild:SEED` for any seed."""

from bramble.generator.world_text import wild_text
from bramble.worlds.check import check_world
from bramble.worlds.model import World, WorldError
from bramble.worlds.rom_builder import build_rom
from bramble.worlds.world_parser import parse_world, world_names, world_text

WILD = "wild:"
MAX_SEED_DIGITS = 9


def world(name: str) -> World:
    """A world by name, checked. Raise WorldError for an unknown name or a mistake in its file."""
    found = parse_world(name, wild_text(_seed(name)) if name.startswith(WILD) else world_text(name))
    check_world(found)
    return found


def worlds() -> tuple[str, ...]:
    """Names of the worlds that come with the game."""
    return world_names()


def build(name: str, difficulty: str = "normal", seed: int = 0, torn: bool = False) -> bytes:
    """The ROM (32 KiB) of a world; `worlds.rom_builder.build_rom` explains the arguments. Raise WorldError."""
    return build_rom(world(name), difficulty, seed, torn)


def _seed(name: str) -> int:
    digits = name.removeprefix(WILD)
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_SEED_DIGITS):
        raise WorldError(f"there is no world {name!r}: write wild:SEED with a number of up to nine digits, e.g. wild:7")
    return int(digits)
