"""Bramble as a game to play: the ROM of a world, what it can do, and its milestones."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

import bramble
from bramble.worlds.milestones import reached
from shared.game import capabilities
from shared.game.errors import UnknownRom
from shared.game.memory import byte_at
from shared.game.roms import Game, Milestone

BOOT_FRAMES: Final = 120  # from power-on until the game has set up its memory


@lru_cache(maxsize=32)
def bramble_game(world: str, difficulty: str = "normal", seed: int = 0, torn: bool = False) -> Game:
    """The game of one Bramble world; built once per process, because many environments share it.

    `torn` gives the build that updates while the picture is drawn, as commercial games do (see snapshot.py). Raises
    UnknownRom for a world that there is not.
    """
    try:
        return _game(world, difficulty, seed, torn)
    except bramble.WorldError as error:  # Bramble does not know the project's tree of errors
        raise UnknownRom(str(error)) from error


def _game(world: str, difficulty: str, seed: int, torn: bool) -> Game:
    return Game(
        name=f"bramble:{world}",
        rom=bramble.build(world, difficulty=difficulty, seed=seed & 0xFFFF, torn=torn),
        capabilities=capabilities.BRAMBLE,
        milestones=tuple(Milestone(step.name, _test(step)) for step in bramble.world(world).milestones),
        boot_frames=BOOT_FRAMES,
        updates_after_vblank=torn,
        checks_hardware=True,
    )


def _test(milestone: bramble.WorldMilestone) -> Callable[[bytes], bool]:
    return lambda image: reached(milestone, partial(byte_at, image))
