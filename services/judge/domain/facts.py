"""The facts of one segment: where it began and ended, sums over it, and its events.

A sum that cannot be known is None and printed as `unknown`. Rewards and milestones have no place here.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.judge.domain.events import Event, Places, difference, events_of, quoted, room_label
from services.judge.domain.moments import Moment


@dataclass(frozen=True, slots=True)
class Facts:
    """What a judge is told about one segment, before it is put into words."""

    game: str
    seconds: float
    start: str
    end: str
    totals: dict[str, int | None]
    events: tuple[Event, ...]


def facts_of(game: str, frame_skip: int, moments: Sequence[Moment], places: Places) -> Facts:
    """Compute the facts. `moments` has at least one element; a step lasts `frame_skip` / 60 s."""
    events = events_of(moments, places)
    return Facts(
        game=game,
        seconds=len(moments) * frame_skip / 60,
        start=_situation(moments[0], places),
        end=_situation(moments[-1], places),
        totals={"steps": len(moments), **_movement(moments), **_counts(moments, events)},
        events=tuple(events),
    )


def _situation(moment: Moment, places: Places) -> str:
    """One line: where the hero is and what he has."""
    season = [f"season {moment.season}"] if moment.season else []  # most games have none
    parts = [room_label(moment, places), *season]
    parts.append(f"health {_known(moment.health)} of {_known(moment.max_health)} quarter hearts")
    parts.append(
        f"{_known(moment.rupees)} rupees, {_known(moment.keys)} small keys, {_known(moment.essences)} essences"
    )
    parts.append(f"items: {_list(moment.treasures)}")
    return "; ".join(parts)


def _movement(moments: Sequence[Moment]) -> dict[str, int | None]:
    """Rooms and tiles visited, the longest time without a new tile, and time in boxes and menus; all in steps."""
    rooms = {moment.place for moment in moments if moment.place is not None}
    tiles: set[tuple[int, int, int, int]] = set()
    longest = since = 0
    for moment in moments:
        since += 1
        if moment.tile is not None and moment.tile not in tiles:
            tiles.add(moment.tile)
            since = 0
        longest = max(longest, since)
    return {
        "rooms visited": len(rooms) or None,
        "rooms never seen before": difference(moments[0].rooms_visited, moments[-1].rooms_visited),
        "tiles visited": len(tiles) or None,
        "longest time without a new tile": longest if tiles else None,
        "steps with text on the screen": _true(moment.talking for moment in moments),
        "steps in a menu": _true(None if moment.menu is None else moment.menu > 0 for moment in moments),
    }


# Sum, the kind of event that it counts, and the field without which it is unknown.
_COUNTED = (
    ("items obtained", "item", "treasures"),
    ("treasures taken", "taken", "items_taken"),
    ("essences obtained", "essence", "essences"),
    ("heart containers obtained", "heart", "max_health"),
    ("dungeons entered", "dungeon", "in_dungeon"),
    ("small keys found", "key", "keys"),
    ("small keys used", "key_used", "keys"),
    ("doors opened for good", "door", "doors_opened"),
    ("puzzles or tasks solved", "solved", "sounds"),
    ("bosses beaten", "boss", "sounds"),
    ("payments made", "paid", "rupees"),
    ("times hurt", "hurt", "health"),
    ("deaths", "death", "deaths"),
)


def _counts(moments: Sequence[Moment], events: Sequence[Event]) -> dict[str, int | None]:
    kinds = Counter(event.kind for event in events)
    counted = {
        name: kinds[kind] if any(getattr(moment, field) is not None for moment in moments) else None
        for name, kind, field in _COUNTED
    }
    texts = len({event.what for event in events if event.kind == "text"})
    return {**counted, "different texts shown": texts if any(m.talking is not None for m in moments) else None}


def _true(flags: Iterable[bool | None]) -> int | None:
    """How often a flag was set; None when it was never known."""
    known = [flag for flag in flags if flag is not None]
    return sum(known) if known else None


def _known(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _list(names: frozenset[str] | None) -> str:
    if names is None:
        return "unknown"
    return ", ".join(quoted(name) for name in sorted(names)) or "none"
