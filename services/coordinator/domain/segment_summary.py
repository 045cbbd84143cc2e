"""What a recorded segment shows: rooms, milestones, rewards, and the events of its steps. Pure: bytes in, facts out."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final

from shared.contracts.archive import SegmentArchive
from shared.contracts.segment import ACTIONS, BEFORE, FRAMES, STATES, SegmentManifest
from shared.errors import ContractError

Room = tuple[int, int]
"""Group and number of a room."""

MAX_TIMELINE: Final = 300  # entries; a segment of 5,000 steps could fill megabytes
FIGURES: Final = ("health", "keys", "rupees", "bombs", "sword", "shield", "essences", "deaths", "kills")


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """One segment in a few figures. `play` is equal for segments with the same start and the same actions."""

    manifest: SegmentManifest
    play: str
    frames: int
    rooms: Mapping[Room, int]  # steps in each room
    pictures: Mapping[Room, int]  # a room's key frame, by its number
    clear: Set[Room]  # rooms whose picture is not covered by a menu or a text, and not on the move to another room


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Something that happened at a step of the segment."""

    step: int
    what: str


def summarise(archive: SegmentArchive) -> SegmentSummary:
    """The summary of an open archive; ContractError or DigestMismatch if it is damaged."""
    manifest, rows = archive.manifest, state_rows(archive)
    pictures, clear = _pictures(manifest, rows)
    return SegmentSummary(
        manifest=manifest,
        play=sha256(f"{manifest.ram_start}{manifest.members.get(ACTIONS)}".encode()).hexdigest()[:16],
        frames=len(frame_names(manifest)),
        rooms=Counter(map(_room, rows)),
        pictures=pictures,
        clear=clear,
    )


def _pictures(manifest: SegmentManifest, rows: list[dict[str, Any]]) -> tuple[dict[Room, int], set[Room]]:
    """The newest clear key frame of each room, else its newest one; and the rooms that have a clear one."""
    found: dict[Room, int] = {}
    clear: set[Room] = set()
    for number, step in enumerate(manifest.key_frames):
        if not 0 < step <= len(rows):
            continue
        row, room = rows[step - 1], _room(rows[step - 1])
        if not (row.get("menu") or row.get("dialog") or row.get("transition")):
            clear.add(room)
        elif room in clear:
            continue
        found[room] = number
    return found, clear


def frame_names(manifest: SegmentManifest) -> list[str]:
    """The archive's pictures in the order of their steps."""
    return sorted(name for name in manifest.members if name.startswith(FRAMES))


def state_rows(archive: SegmentArchive) -> list[dict[str, Any]]:
    """The state after each step."""
    return _rows(archive, STATES)


def archive_timeline(archive: SegmentArchive) -> list[TimelineEntry]:
    """The timeline of an archive. An older one lacks the state before its first step, and so what that step changed."""
    before = _rows(archive, BEFORE) if BEFORE in archive.manifest.members else []
    return timeline([*before, *state_rows(archive)], first=2 - len(before))


def timeline(rows: list[dict[str, Any]], first: int = 2) -> list[TimelineEntry]:
    """What changed from row to row, oldest first: rooms, figures, items, texts, and the game's own events.

    `first` is the step of the second row.
    """
    found: list[TimelineEntry] = []
    for step, (before, after) in enumerate(pairwise(rows), start=first):
        found += [TimelineEntry(step, what) for what in _changes(before, after)]
    return found[:MAX_TIMELINE]


def _rows(archive: SegmentArchive, member: str) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in archive.read(member).splitlines()]
    except ValueError as error:
        raise ContractError(f"segment {archive.manifest.segment}: {member} is not JSON lines") from error


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if _room(before) != _room(after):
        yield f"enters {after.get('area')} room {after.get('room')}"
    for name in FIGURES:
        old, new = before.get(name), after.get(name)
        if old is not None and new is not None and old != new:
            yield f"{name} {old} → {new}"
    yield from (f"gets {item}" for item in _new(before.get("treasures"), after.get("treasures")))
    if after.get("dialog") and not before.get("dialog"):
        yield f"text: {after['dialog'].get('line') or after['dialog'].get('text')}"
    yield from (str(event) for event in after.get("events") or ())


def _new(before: list[str] | None, after: list[str] | None) -> list[str]:
    return sorted(set(after or ()) - set(before or ())) if before is not None else []


def _room(row: Mapping[str, Any]) -> Room:
    return int(row["group"]), int(row["room"])
