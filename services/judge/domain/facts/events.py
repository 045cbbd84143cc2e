"""Detects the events of a segment and words them for the judges.

Events come from states alone, never from rewards, milestones or the policy, which would give away the answer. The words
are part of the prompt: changing them changes the prompt digest.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from services.judge.domain.facts.dialogs import texts_shown
from services.judge.domain.facts.states import StepState

# Owned permanently after the first one; each has its own event.
SEPARATE_EVENTS = frozenset({"rupees", "hearts", "heart container", "small key", "essence", "ore chunks"})
VISIT_DELAY = 12  # steps; scrolling between rooms takes about ten

RoomNames = Mapping[str, str]
"""Room names by `group:room` in hexadecimal, e.g. `0:d9`."""


class Importance(IntEnum):
    """Importance of an event. A timeline that is too long drops the lowest first."""

    MINOR = 0
    NORMAL = 1
    MAJOR = 2
    VITAL = 3


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One line of the timeline. `step` counts from the segment's start; `what` has no line breaks."""

    step: int
    kind: str
    what: str
    importance: Importance


# Sounds of the game that are events. Other sounds are ignored.
SOUNDS: Mapping[str, tuple[str, str, Importance]] = {
    "solved": ("solved", "the game confirmed a solved puzzle or task", Importance.MAJOR),
    "unlocked": ("unlocked", "a lock was opened", Importance.MAJOR),
    "boss beaten": ("boss", "a boss was beaten", Importance.VITAL),
    "switch": ("switch", "a switch was pressed", Importance.NORMAL),
    "pushed": ("pushed", "a block was pushed", Importance.NORMAL),
    "torch": ("torch", "a torch was lit", Importance.NORMAL),
    "cut": ("cut", "a bush was cut", Importance.MINOR),
    "fell": ("fell", "the player fell", Importance.NORMAL),
    "refused": ("refused", "the game refused what was tried", Importance.MINOR),
    "enemy killed": ("kill", "an enemy was defeated", Importance.MINOR),
}


def quoted(text: str) -> str:
    """Return game text as a JSON string, which no quote, line break or control character can leave."""
    return json.dumps(text, ensure_ascii=True)


def room_label(state: StepState, room_names: RoomNames) -> str:
    """Return a room's label: its name if known, and its number and area."""
    if state.room_key is None:
        return "an unknown room"
    number = f"{state.room_key[0]:x}:{state.room_key[1]:02x}"
    name = room_names.get(number)
    label = f"{quoted(name)}, room {number}" if name else f"room {number}"
    return f"{label} ({state.area})" if state.area else label


def detect_events(
    states: Sequence[StepState], room_names: RoomNames, before: StepState | None = None
) -> list[TimelineEvent]:
    """Return all events of a segment in order of their steps. `before` is the state before its first action."""
    chain = [*([] if before is None else [before]), *states]
    found = list(_moves(chain, room_names))
    for earlier, now in pairwise(chain):
        found.extend(_gains(earlier, now))
        found.extend(_harm(earlier, now))
    for now in states:
        found.extend(TimelineEvent(now.step, *SOUNDS[sound]) for sound in now.sounds or () if sound in SOUNDS)
    for step, text in texts_shown(states):
        found.append(TimelineEvent(step, "text", f"the game showed the text {quoted(text)}", Importance.NORMAL))
    return sorted(found, key=lambda event: event.step)


def _moves(states: Sequence[StepState], room_names: RoomNames) -> Iterator[TimelineEvent]:
    """Yield entered rooms: new ones, those known from before the clip, and those already seen in it."""
    seen, visited = {states[0].room_key}, states[0].rooms_visited
    for number, (before, now) in enumerate(pairwise(states), start=1):
        if before.in_dungeon is False and now.in_dungeon is True:
            yield TimelineEvent(now.step, "dungeon", "entered a dungeon", Importance.MAJOR)
        if now.room_key is None or now.room_key == before.room_key:
            continue
        # The game marks a room as visited some steps before or after the player enters it.
        soon = states[min(number + VISIT_DELAY, len(states) - 1)].rooms_visited
        label = room_label(now, room_names)
        if now.room_key not in seen and (difference(visited, soon) or 0) > 0:
            yield TimelineEvent(now.step, "new_room", f"entered {label}, never seen before", Importance.NORMAL)
            visited = soon
        elif now.room_key not in seen:
            yield TimelineEvent(now.step, "room", f"entered {label}, known from before this clip", Importance.NORMAL)
        else:
            yield TimelineEvent(now.step, "back", f"went back to {label}", Importance.MINOR)
        seen.add(now.room_key)


def _gains(before: StepState, now: StepState) -> Iterator[TimelineEvent]:
    if before.treasures is not None and now.treasures is not None:
        for name in sorted(now.treasures - before.treasures - SEPARATE_EVENTS):
            yield TimelineEvent(now.step, "item", f"obtained {quoted(name)}", Importance.MAJOR)
    if (difference(before.essences, now.essences) or 0) > 0:
        yield TimelineEvent(now.step, "essence", "obtained an essence", Importance.VITAL)
    if (difference(before.max_health, now.max_health) or 0) > 0:
        yield TimelineEvent(now.step, "heart", "gained a heart container", Importance.MAJOR)
    for name, kind, words in (
        ("items_taken", "taken", "took the treasure of this room"),
        ("doors_opened", "door", "a door was opened for good"),
    ):
        if (difference(getattr(before, name), getattr(now, name)) or 0) > 0:
            yield TimelineEvent(now.step, kind, words, Importance.MAJOR)
    yield from _counted(before, now)


def _counted(before: StepState, now: StepState) -> Iterator[TimelineEvent]:
    keys = difference(before.keys, now.keys)  # counted per dungeon, and unknown outside
    if keys and before.in_dungeon == now.in_dungeon:
        words = f"found a small key (now {now.keys})" if keys > 0 else "used a small key"
        yield TimelineEvent(now.step, "key" if keys > 0 else "key_used", words, Importance.MAJOR)
    rupees = difference(before.rupees, now.rupees)
    if rupees:
        words = f"gained {rupees} rupees" if rupees > 0 else f"paid {-rupees} rupees"
        yield TimelineEvent(now.step, "rupees" if rupees > 0 else "paid", words, Importance.MINOR)


def _harm(before: StepState, now: StepState) -> Iterator[TimelineEvent]:
    health = difference(before.health, now.health) or 0
    if health < 0:
        yield TimelineEvent(now.step, "hurt", f"lost {-health} quarter hearts", Importance.NORMAL)
    elif health > 0:
        yield TimelineEvent(now.step, "healed", f"regained {health} quarter hearts", Importance.MINOR)
    if (difference(before.deaths, now.deaths) or 0) > 0:
        yield TimelineEvent(now.step, "death", "died", Importance.VITAL)


def difference(before: int | None, now: int | None) -> int | None:
    """Return the change of a count; None if one side is unknown."""
    return None if before is None or now is None else now - before
