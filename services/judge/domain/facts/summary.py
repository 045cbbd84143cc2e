"""Computes the facts of one segment: start and end, totals, and events.

An unknown total is None and rendered as `unknown`. Rewards and milestones must not appear here.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.judge.domain.facts.events import RoomNames, TimelineEvent, detect_events, difference, quoted, room_label
from services.judge.domain.facts.states import StepState


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one segment before they are rendered as text. `totals` are in steps or counts."""

    game: str
    seconds: float
    start: str
    end: str
    totals: dict[str, int | None]
    events: tuple[TimelineEvent, ...]


def compute_facts(
    game: str,
    frame_skip: int,
    states: Sequence[StepState],
    room_names: RoomNames,
    before: StepState | None = None,
) -> Facts:
    """Compute the facts. `states` follow the actions and are not empty; a step lasts `frame_skip` / 60 s.

    `before` is the state before the first action. Without it, what the first action changed is unknown.
    """
    events = detect_events(states, room_names, before)
    first = before or states[0]
    return Facts(
        game=game,
        seconds=len(states) * frame_skip / 60,
        start=_situation(first, room_names),
        end=_situation(states[-1], room_names),
        totals={"steps": len(states), **_movement(states, first), **_counts(states, events)},
        events=tuple(events),
    )


def _situation(state: StepState, room_names: RoomNames) -> str:
    """Return one line: where the player is and what the player owns."""
    season = [f"season {state.season}"] if state.season else []  # most games have none
    parts = [room_label(state, room_names), *season]
    parts.append(f"health {_known(state.health)} of {_known(state.max_health)} quarter hearts")
    parts.append(f"{_known(state.rupees)} rupees, {_known(state.keys)} small keys, {_known(state.essences)} essences")
    parts.append(f"items: {_list(state.treasures)}")
    return "; ".join(parts)


def _movement(states: Sequence[StepState], first: StepState) -> dict[str, int | None]:
    """Return rooms and tiles visited, and steps without a new tile, with text and in menus."""
    rooms = {state.room_key for state in states if state.room_key is not None}
    tiles: set[tuple[int, int, int, int]] = set()
    longest = since = 0
    for state in states:
        since += 1
        if state.tile is not None and state.tile not in tiles:
            tiles.add(state.tile)
            since = 0
        longest = max(longest, since)
    return {
        "rooms visited": len(rooms) or None,
        "rooms never seen before": difference(first.rooms_visited, states[-1].rooms_visited),
        "tiles visited": len(tiles) or None,
        "longest time without a new tile": longest if tiles else None,
        "steps with text on the screen": _true(state.talking for state in states),
        "steps in a menu": _true(None if state.menu is None else state.menu > 0 for state in states),
    }


# Total, the kind of event that it counts, and the state field without which it is unknown.
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


def _counts(states: Sequence[StepState], events: Sequence[TimelineEvent]) -> dict[str, int | None]:
    kinds = Counter(event.kind for event in events)
    counted = {
        name: kinds[kind] if any(getattr(state, field) is not None for state in states) else None
        for name, kind, field in _COUNTED
    }
    texts = len({event.what for event in events if event.kind == "text"})
    return {**counted, "different texts shown": texts if any(m.talking is not None for m in states) else None}


def _true(flags: Iterable[bool | None]) -> int | None:
    """Return how often a flag was set; None if it was never known."""
    known = [flag for flag in flags if flag is not None]
    return sum(known) if known else None


def _known(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _list(names: frozenset[str] | None) -> str:
    if names is None:
        return "unknown"
    return ", ".join(quoted(name) for name in sorted(names)) or "none"
