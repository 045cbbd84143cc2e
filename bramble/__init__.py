"""Bramble: a free Game Boy Color game with the RAM layout of Oracle of Seasons.

rom = bramble.build("vale", difficulty="normal", seed=7)
steps = bramble.world("vale").milestones
"""

from bramble.build import join
from bramble.check import check_world
from bramble.model import Condition, Milestone, World, WorldError
from bramble.worldfile import WORLDS, read_world

__all__ = ["Condition", "Milestone", "World", "WorldError", "build", "world", "worlds"]


def worlds() -> tuple[str, ...]:
    """Names of the worlds that come with the game."""
    return tuple(sorted(path.stem for path in WORLDS.glob("*.txt")))


def world(name: str) -> World:
    """A world by name, checked. Raise WorldError for an unknown name or a mistake in its file."""
    found = read_world(name)
    check_world(found)
    return found


def build(name: str, difficulty: str = "normal", seed: int = 0, torn: bool = False) -> bytes:
    """The ROM (32 KiB) of a world; see bramble.build.join for the arguments. Raise WorldError."""
    return join(world(name), difficulty, seed, torn)
