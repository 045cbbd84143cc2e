"""The games that are measured, by the name that they have in figures."""

from collections.abc import Callable, Mapping
from typing import Final

from bench.load_rom import load_game
from shared.game.roms import Game, open_game

GAMES: Final[Mapping[str, Callable[[], Game]]] = {
    "bramble": lambda: open_game("bramble", world="vale"),
    "cpu_bound": load_game,  # its frames take as long as those of a commercial game
}
