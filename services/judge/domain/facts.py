"""The facts of one segment: where it began and ended, sums over it, and its events.

A sum that cannot be known is None and printed as `unknown`. Rewards and milestones have no place here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.judge.domain.events import Event, events_of, quoted, room_label
from services.judge.domain.moments import Moment


@dataclass(frozen=True, slots=True)
class Facts:
    """What a judge is told about one segment, before it is put into words."""

    game: str
    seconds: float
    first: Moment
    last: Moment
    totals: dict[str, int | None]
    events: tuple[Event, ...]


def facts_of(game: str, frame_skip: int, moments: Sequence[Moment]) -> Facts:
    """Compute the facts. `moments` has at least one element; a step lasts `frame_skip` / 60 s."""
    events = events_of(moments)
    return Facts(
        game=game,
        seconds=len(moments) * frame_skip / 60,
        first=moments[0],
        last=moments[-1],
        totals={"steps": len(moments), **_movement(moments), **_counts(moments, events), **_time_spent(moments)},
        events=tuple(events),
    )


def situation(moment: Moment) -> str:
    """One line: where the hero is and what he has."""
    parts = [room_label(moment), f"health {_of(moment.health, moment.max_health)} quarter hearts"]
    parts.append(f"{_known(moment.rupees)} rupees, {_known(moment.keys)} small keys")
    parts.append(f"items: {_list(moment.items)}; essences: {_list(moment.essences)}")
    return "; ".join(parts)


def _movement(moments: Sequence[Moment]) -> dict[str, int | None]:
    """Rooms and tiles visited, and the longest time without a new tile, in steps."""
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
        "tiles visited": len(tiles) or None,
        "longest time without a new tile": longest if tiles else None,
    }


def _counts(moments: Sequence[Moment], events: Iterable[Event]) -> dict[str, int | None]:
    kinds = [event.kind for event in events]
    return {
        "items obtained": _if_known(kinds.count("item"), moments, "items"),
        "essences obtained": _if_known(kinds.count("essence"), moments, "essences"),
        "small keys found": _if_known(kinds.count("key"), moments, "keys"),
        "small keys used": _if_known(kinds.count("key_used"), moments, "keys"),
        "heart containers obtained": _if_known(kinds.count("heart"), moments, "max_health"),
        "puzzles and tasks solved": _if_known(kinds.count("solved"), moments, "solved"),
        "payments made": _if_known(kinds.count("paid"), moments, "rupees"),
        "different texts shown": len({event.what for event in events if event.kind == "dialog"}),
        "times hurt": _if_known(kinds.count("damage"), moments, "health"),
        "deaths": _if_known(kinds.count("death"), moments, "deaths"),
    }


def _time_spent(moments: Sequence[Moment]) -> dict[str, int | None]:
    return {
        "steps with text on the screen": _count_flag(moments, "talking"),
        "steps in a menu": _count_flag(moments, "menu"),
    }


def _count_flag(moments: Sequence[Moment], name: str) -> int | None:
    values = [getattr(moment, name) for moment in moments]
    return None if all(value is None for value in values) else sum(value is True for value in values)


def _if_known(count: int, moments: Sequence[Moment], name: str) -> int | None:
    return None if all(getattr(moment, name) is None for moment in moments) else count


def _known(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _of(value: int | None, most: int | None) -> str:
    return f"{_known(value)} of {_known(most)}"


def _list(names: frozenset[str] | None) -> str:
    if names is None:
        return "unknown"
    return ", ".join(quoted(name) for name in sorted(names)) or "none"
