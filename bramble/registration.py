"""Bramble as a game of the platform: the ROM of a world, its capabilities and milestones."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

import bramble
from bramble.worlds.milestones import reached
from shared.game.errors import UnknownRom
from shared.game.games.game import Game, Milestone
from shared.game.games.registry import GameRequest
from shared.game.ram import capabilities
from shared.game.ram.variables import byte_at

BRAMBLE: Final = "bramble"
BOOT_FRAMES: Final = 120  # from power-on until the game has set up its memory


def open_bramble(request: GameRequest) -> Game:
    """The game of a run's configuration, for the platform's registry of games."""
    return bramble_game(request.world, request.difficulty, request.seed)


@lru_cache(maxsize=32)
def bramble_game(world: str, difficulty: str = "normal", seed: int = 0, torn: bool = False) -> Game:
    """The game of one Bramble world; built once per process, because many environments share it.

    `torn` selects the build that updates while the picture is drawn, as commercial games do (see
    shared/game/emulator/snapshot.py). Raises UnknownRom for an unknown world.
    """
    try:
        return _game(world, difficulty, seed, torn)
    except bramble.WorldError as error:
        raise UnknownRom(str(error)) from error


def _game(world: str, difficulty: str, seed: int, torn: bool) -> Game:
    return Game(
        name=f"{BRAMBLE}:{world}",
        rom=bramble.build(world, difficulty=difficulty, seed=seed & 0xFFFF, torn=torn),
        capabilities=capabilities.BRAMBLE,
        milestones=tuple(Milestone(step.name, _test(step)) for step in bramble.world(world).milestones),
        boot_frames=BOOT_FRAMES,
        updates_after_vblank=torn,
        checks_hardware=True,
    )


def _test(milestone: bramble.WorldMilestone) -> Callable[[bytes], bool]:
    return lambda image: reached(milestone, partial(byte_at, image))
