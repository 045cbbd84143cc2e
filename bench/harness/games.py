"""The games under measurement, by their name in figures."""

from collections.abc import Callable, Mapping
from typing import Final

from bench.load_rom import load_game
from bramble.registration import bramble_game
from shared.game.games.game import Game

GAMES: Final[Mapping[str, Callable[[], Game]]] = {
    "bramble": lambda: bramble_game("vale"),
    "garden": lambda: bramble_game("garden"),
    "cpu_bound": load_game,  # its frames take as long as those of a commercial game
}
