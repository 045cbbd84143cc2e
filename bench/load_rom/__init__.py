"""A ROM that costs the emulator as much as a commercial game; for benchmarks only.

All of its twelve enemies move in each frame: a full room (a commercial game has sixteen slots). Fewer enemies would
make the environment's share of the cost look smaller.
"""

from pathlib import Path

from shared.game.games.game import Game
from shared.game.ram import capabilities

ROM = Path(__file__).with_name("load.gbc")


def load_game() -> Game:
    """The load ROM as a game that the environment can play."""
    return Game("load", ROM.read_bytes(), capabilities.CORE, boot_frames=300, checks_hardware=True)
