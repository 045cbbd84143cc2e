"""What happened in a segment, as events in plain words: the only thing the judges are told.

Computed from states alone; never from rewards, milestones or the policy. A judge with the answer key judges nothing.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from services.judge.domain.moments import Moment


class Importance(IntEnum):
    """What goes first when a timeline is too long: the lowest."""

    MINOR = 0
    NORMAL = 1
    MAJOR = 2
    VITAL = 3


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the timeline. `step` counts from the segment's beginning; `what` is free of line breaks."""

    step: int
    kind: str
    what: str
    importance: Importance


def quoted(text: str) -> str:
    """Game text as data: a JSON string, so that no quote, line break or control character gets out of it."""
    return json.dumps(text, ensure_ascii=True)


def room_label(moment: Moment) -> str:
    """How a room is named to a judge: by its name where the game has one, else by group and number."""
    if moment.place is None:
        return "an unknown room"
    number = f"room {moment.place[0]}:{moment.place[1]:02x}"
    return f"{quoted(moment.room_name)} ({number})" if moment.room_name else number


def events_of(moments: Sequence[Moment]) -> list[Event]:
    """All events of a segment, in the order of their steps."""
    found: list[Event] = []
    seen = {moments[0].place} if moments else set()
    for before, now in pairwise(moments):
        found.extend(_moves(before, now, seen))
        found.extend(_gains(before, now))
        found.extend(_harm(before, now))
    found.extend(_dialogs(moments))
    return sorted(found, key=lambda event: event.step)


def _moves(before: Moment, now: Moment, seen: set[tuple[int, int] | None]) -> Iterator[Event]:
    if now.place is None or now.place == before.place:
        return
    if now.place not in seen:
        seen.add(now.place)
        yield Event(
            now.step, "new_room", f"entered {room_label(now)} for the first time in this clip", Importance.NORMAL
        )
    else:
        yield Event(now.step, "room", f"went back to {room_label(now)}", Importance.MINOR)
    if before.dungeon is not None and now.dungeon is not None and before.dungeon != now.dungeon:
        way = "entered" if now.dungeon not in (-1, 255) else "left"
        yield Event(now.step, f"dungeon_{way}", f"{way} a dungeon", Importance.MAJOR)


def _gains(before: Moment, now: Moment) -> Iterator[Event]:
    for kind, words, old, new in (
        ("item", "obtained item", before.items, now.items),
        ("essence", "obtained essence", before.essences, now.essences),
        ("solved", "solved", before.solved, now.solved),
    ):
        if old is not None and new is not None:
            importance = Importance.VITAL if kind == "essence" else Importance.MAJOR
            for name in sorted(new - old):
                yield Event(now.step, kind, f"{words} {quoted(name)}", importance)
    yield from _changes(before, now)


def _changes(before: Moment, now: Moment) -> Iterator[Event]:
    keys = _difference(before.keys, now.keys)
    if keys and before.dungeon == now.dungeon:  # small keys are counted per dungeon
        words = f"found {keys} small key" if keys > 0 else f"used {-keys} small key"
        yield Event(now.step, "key" if keys > 0 else "key_used", words, Importance.MAJOR)
    rupees = _difference(before.rupees, now.rupees)
    if rupees:
        words = f"gained {rupees} rupees" if rupees > 0 else f"paid {-rupees} rupees"
        yield Event(now.step, "rupees" if rupees > 0 else "paid", words, Importance.MINOR)
    if (_difference(before.max_health, now.max_health) or 0) > 0:
        yield Event(now.step, "heart", "gained a heart container", Importance.MAJOR)
    kills = _difference(before.kills, now.kills) or 0
    if kills > 0:
        yield Event(now.step, "kill", f"defeated {kills} enemies", Importance.MINOR)


def _harm(before: Moment, now: Moment) -> Iterator[Event]:
    health = _difference(before.health, now.health) or 0
    if health < 0:
        yield Event(now.step, "damage", f"lost {-health} quarter hearts", Importance.NORMAL)
    elif health > 0:
        yield Event(now.step, "healed", f"regained {health} quarter hearts", Importance.MINOR)
    if (_difference(before.deaths, now.deaths) or 0) > 0:
        yield Event(now.step, "death", "died", Importance.VITAL)


def _dialogs(moments: Sequence[Moment]) -> Iterator[Event]:
    """Each text once per time it is shown; a line that is still being written grows, and only its end counts."""
    shown: tuple[int, str] | None = None
    for now in moments:
        if shown is not None and (now.dialog is None or not now.dialog.startswith(shown[1])):
            yield Event(shown[0], "dialog", f"the game showed the text {quoted(shown[1])}", Importance.NORMAL)
            shown = None
        if now.dialog is not None:
            shown = (shown[0] if shown else now.step, now.dialog)
    if shown is not None:
        yield Event(shown[0], "dialog", f"the game showed the text {quoted(shown[1])}", Importance.NORMAL)


def _difference(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before
