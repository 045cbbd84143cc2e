"""One row of states.jsonl as the judges need it. Unknown stays None; it must never become 0.

The judge has no emulator: it reads what the recorder decoded, and takes only the fields named here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

MAX_TEXT = 300  # longest quoted piece of game text; the games show far less at once


@dataclass(frozen=True, slots=True)
class Moment:
    """The game at one step. Health is in quarter hearts, positions in pixels within the room."""

    step: int
    group: int | None = None
    room: int | None = None
    room_name: str | None = None
    x: int | None = None
    y: int | None = None
    health: int | None = None
    max_health: int | None = None
    rupees: int | None = None
    keys: int | None = None
    dungeon: int | None = None
    season: int | None = None
    items: frozenset[str] | None = None
    essences: frozenset[str] | None = None
    solved: frozenset[str] | None = None
    kills: int | None = None
    deaths: int | None = None
    dialog: str | None = None
    talking: bool | None = None
    menu: bool | None = None
    transition: bool | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any], step: int) -> Self:
        """Read one decoded row; a field of the wrong type is unknown, because a guess would be an invention."""
        known: dict[str, Any] = {}
        for name in _NUMBERS:
            known[name] = _number(row.get(name))
        for name in _FLAGS:
            known[name] = row.get(name) if isinstance(row.get(name), bool) else None
        for name in _NAMES:
            known[name] = _names(row.get(name))
        for name in _TEXTS:
            known[name] = _text(row.get(name))
        return cls(step=step, **known)

    @property
    def place(self) -> tuple[int, int] | None:
        """The room, qualified by its group: room numbers repeat between groups."""
        return None if self.group is None or self.room is None else (self.group, self.room)

    @property
    def tile(self) -> tuple[int, int, int, int] | None:
        """The 16-pixel tile of the room that the hero stands on."""
        if self.place is None or self.x is None or self.y is None:
            return None
        return (*self.place, self.x // 16, self.y // 16)


_TEXTS = ("dialog", "room_name")
_FLAGS = ("talking", "menu", "transition")
_NAMES = ("items", "essences", "solved")
_NUMBERS = tuple(f.name for f in fields(Moment) if f.name not in (*_TEXTS, *_FLAGS, *_NAMES, "step"))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return " ".join(value.split())[:MAX_TEXT] or None


def _names(value: Any) -> frozenset[str] | None:
    if not isinstance(value, list):
        return None
    return frozenset(" ".join(str(name).split())[:60] for name in value)
