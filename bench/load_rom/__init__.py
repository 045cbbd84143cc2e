"""A ROM that costs the emulator as much as a commercial game may; for measuring only."""

from pathlib import Path

from shared.game import capabilities
from shared.game.roms import Game

ROM = Path(__file__).with_name("load.gbc")


def load_game() -> Game:
    """The load ROM as a game that the environment can play."""
    return Game("load", ROM.read_bytes(), capabilities.CORE, boot_frames=300, checks_hardware=True)
