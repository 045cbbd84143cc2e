"""Bramble as a game to play: the ROM of a world, what it can do, and its milestones."""

from functools import lru_cache
from typing import Final

import bramble
from shared.game import capabilities
from shared.game.roms import Game, Milestone

BOOT_FRAMES: Final = 60  # from power-on to the first moment in play; a test holds that the hero obeys by then


@lru_cache(maxsize=32)
def bramble_game(world: str, difficulty: str = "normal", seed: int = 0) -> Game:
    """The game of one Bramble world; built once per process, because many environments share it."""
    return Game(
        name=f"bramble:{world}",
        rom=bramble.build(world, difficulty=difficulty, seed=seed),
        capabilities=capabilities.BRAMBLE,
        milestones=tuple(Milestone(name, test) for name, test in bramble.milestones(world)),
        boot_frames=BOOT_FRAMES,
        checks_hardware=True,
    )
