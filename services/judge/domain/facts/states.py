"""One row of states.jsonl as the judges need it. Unknown stays None; it must never become 0.

The judge has no emulator: it reads what the recorder decoded, and takes only the fields named here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

MAX_WORD = 60  # longest name taken over; the recorder's own limit is 30
TILE_PIXELS = 16


@dataclass(frozen=True, slots=True)
class StepState:
    """The game after one step. Health is in quarter hearts, positions in pixels of the room."""

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
        """Read one decoded row; a field of the wrong type is unknown, because a guess would be an invention."""
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
    def place(self) -> tuple[int, int] | None:
        """The room, qualified by its group: room numbers repeat between groups."""
        return None if self.group is None or self.room is None else (self.group, self.room)

    @property
    def tile(self) -> tuple[int, int, int, int] | None:
        """The tile of the room that the hero stands on."""
        if self.place is None or self.x is None or self.y is None:
            return None
        return (*self.place, self.x // TILE_PIXELS, self.y // TILE_PIXELS)


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
    return value if type(value) is int else None  # a bool is an int, too, but not this type


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
    """The same few lists come at every step."""
    return tuple(word for word in map(_word, words) if word)
