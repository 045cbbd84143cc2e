"""One row of states.jsonl, reduced to the fields that judges need. Unknown is None and must never become 0.

The judge has no emulator: it reads what the recorder decoded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

MAX_WORD = 60  # characters of a name; the recorder's own limit is 30
TILE_PIXELS = 16


@dataclass(frozen=True, slots=True)
class StepState:
    """The game after one step. Health is in quarter hearts, positions are in pixels of the room."""

    step: int
    group: int | None = None
    room: int | None = None
    x: int | None = None
    y: int | None = None
    health: int | None = None
    max_health: int | None = None
    rupees: int | None = None
    keys: int | None = None
    essences: int | None = None
    rooms_visited: int | None = None
    items_taken: int | None = None
    doors_opened: int | None = None
    deaths: int | None = None
    menu: int | None = None
    area: str | None = None
    season: str | None = None
    in_dungeon: bool | None = None
    treasures: frozenset[str] | None = None
    sounds: tuple[str, ...] | None = None
    text: int | None = None
    line: str | None = None
    talking: bool | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any], step: int) -> Self:
        """Parse one decoded row. A field of the wrong type is unknown: a guess would be an invention."""
        dialog = row.get("dialog")
        shown = dialog if isinstance(dialog, Mapping) else {}
        treasures, sounds = _words(row.get("treasures")), _words(row.get("events"))
        numbers = {name: _number(row.get(name)) for name in _NUMBERS}
        return cls(
            step=step,
            **numbers,
            area=_word(row.get("area")),
            season=_word(row.get("season")),
            in_dungeon=row["in_dungeon"] if isinstance(row.get("in_dungeon"), bool) else None,
            treasures=None if treasures is None else frozenset(treasures),
            sounds=sounds,
            text=_number(shown.get("text")),
            line=(_word(shown.get("line")) or "") if shown else None,
            talking=bool(shown) if "dialog" in row else None,
        )

    @property
    def room_key(self) -> tuple[int, int] | None:
        """The room with its group, because room numbers repeat between groups."""
        return None if self.group is None or self.room is None else (self.group, self.room)

    @property
    def tile(self) -> tuple[int, int, int, int] | None:
        """The tile that the player stands on: group, room, column, row."""
        if self.room_key is None or self.x is None or self.y is None:
            return None
        return (*self.room_key, self.x // TILE_PIXELS, self.y // TILE_PIXELS)


_NUMBERS = (
    "group",
    "room",
    "x",
    "y",
    "health",
    "max_health",
    "rupees",
    "keys",
    "essences",
    "rooms_visited",
    "items_taken",
    "doors_opened",
    "deaths",
    "menu",
)


def _number(value: Any) -> int | None:
    return value if type(value) is int else None  # excludes bool, which is a subclass of int


def _word(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return " ".join(value.split())[:MAX_WORD] or None


def _words(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return _cleaned(tuple(word for word in value if isinstance(word, str)))


@lru_cache(maxsize=1024)
def _cleaned(words: tuple[str, ...]) -> tuple[str, ...]:
    """Cached because the same few lists repeat at every step."""
    return tuple(word for word in map(_word, words) if word)
