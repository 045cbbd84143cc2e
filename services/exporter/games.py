"""The games that this service can open."""

from typing import Final

from bramble.registration import BRAMBLE, open_bramble
from shared.game.games.oracle import ORACLE, oracle_game
from shared.game.games.registry import GameRegistry

GAMES: Final = GameRegistry({BRAMBLE: open_bramble, ORACLE: oracle_game})
