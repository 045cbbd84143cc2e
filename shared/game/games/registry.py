"""The games that a program can open, by the name that a run's configuration uses.

The registry is empty: a program's composition root registers its games. So this package knows no game of the platform.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shared.game.errors import UnknownRom
from shared.game.games.game import Game


@dataclass(frozen=True, slots=True)
class GameRequest:
    """What a run says about its game. A game ignores the fields that it does not need."""

    world: str = "vale"
    difficulty: str = "normal"
    seed: int = 0
    rom: Path | None = None
    """The user's own ROM image."""
    start: Path | None = None
    """A saved state of that ROM in which the hero can walk."""


class GameFactory(Protocol):
    """Opens one game; raises UnknownRom when its ROM or world is missing or unknown."""

    def __call__(self, request: GameRequest, /) -> Game:
        """The game of this request."""
        ...


class GameRegistry:
    """Factories by game name."""

    def __init__(self, factories: Mapping[str, GameFactory]) -> None:
        self._factories = dict(factories)

    def open(self, name: str, request: GameRequest | None = None) -> Game:
        """Open a registered game, or raise UnknownRom."""
        if name not in self._factories:
            raise UnknownRom(f"unknown game {name!r}: use {' or '.join(self._factories)}")
        return self._factories[name](request or GameRequest())
