"""Builds segment archives for the judge's tests: a walk with changes at given steps."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from PIL import Image

from services.judge.domain.facts.states import StepState
from services.judge.domain.facts.summary import Facts, compute_facts
from services.judge.domain.judge_input import JudgeInput
from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import SegmentReady
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.contracts.segment import BEFORE, FRAMES, MANIFEST, STATES, SegmentManifest
from shared.store import keys
from shared.store.port import Store

RUN = RunId("demo")
QUIET: Mapping[str, Any] = {
    "group": 0,
    "room": 0x12,
    "x": 80,
    "y": 64,
    "area": "overworld",
    "health": 12,
    "max_health": 12,
    "rupees": 0,
    "keys": None,
    "essences": 0,
    "treasures": [],
    "season": None,
    "in_dungeon": False,
    "menu": 0,
    "dialog": None,
    "events": [],
    "rooms_visited": 1,
    "items_taken": 0,
    "doors_opened": 0,
    "deaths": 0,
}


def rows(steps: int = 300, changes: Mapping[int, Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """Rows of a segment. `changes` by step stay in force until changed again, but for `events`."""
    now = dict(QUIET)
    result = []
    for step in range(steps):
        now = {**now, "events": [], **(changes or {}).get(step, {})}
        result.append({"step": step, **now})
    return result


def walk(rooms: int, steps: int = 300) -> dict[int, dict[str, Any]]:
    """Changes for a walk through `rooms` rooms, moving a tile every ten steps."""
    found: dict[int, dict[str, Any]] = {}
    for step in range(0, steps, 10):
        found[step] = {"x": 8 + (step // 10 * 16) % 144}
    for number in range(1, rooms):
        step = number * steps // rooms
        found[step] = {**found.get(step, {}), "room": 0x12 + number, "rooms_visited": 1 + number}
    return found


def states(changes: Mapping[int, Mapping[str, Any]] | None = None, steps: int = 300) -> list[StepState]:
    """The rows as the judge parses them."""
    return [StepState.from_row(row, step) for step, row in enumerate(rows(steps, changes))]


def facts(changes: Mapping[int, Mapping[str, Any]] | None = None, steps: int = 300) -> Facts:
    """Facts of a segment of Bramble's vale."""
    return compute_facts("bramble:vale", 4, states(changes, steps), {})


def judge_input(
    name: str = "s1", changes: Mapping[int, Mapping[str, Any]] | None = None, frames: int = 0
) -> JudgeInput:
    """A clip as the judges get it."""
    pictures = tuple(picture(number) for number in range(frames))
    return JudgeInput(RUN, SegmentId(name), facts(changes), "", pictures)


def picture(number: int) -> bytes:
    """A small palette PNG of a Game Boy's size, different for each number."""
    image = Image.new("P", (160, 144), number)
    image.putpalette([value for shade in range(8) for value in (shade * 30, 200, 90)])
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def manifest(segment: str = "s1", **fields: Any) -> dict[str, Any]:
    """Fields of a valid manifest without its members."""
    return {
        "run": RUN,
        "epoch": 0,
        "episode": EpisodeId("e1"),
        "segment": SegmentId(segment),
        "index": 0,
        "first_step": 0,
        "steps": 300,
        "game": "bramble:vale",
        "rom": Digest("a" * 64),
        "emulator": "pyboy 2.8.1",
        "frame_skip": 4,
        "seed": 0,
        "observation": "obs/v1",
        "ram_start": Digest("b" * 64),
        "ram_end": Digest("c" * 64),
        "key_frames": [0, 43, 86, 128, 171, 214, 257, 300],
        "milestones_start": 0,
        "milestones_end": 0,
        "milestones_total": 9,
        "created": datetime(2026, 1, 1, tzinfo=UTC),
        **fields,
    }


def archive(
    segment: str = "s1",
    changes: Mapping[int, Mapping[str, Any]] | None = None,
    lines: Sequence[str] | None = None,
    members_of: str | None = None,
    before: str | None = None,
    **fields: Any,
) -> bytes:
    """A segment archive. `lines` replaces states.jsonl; `members_of` makes the manifest's digests those of others.

    `before` is the row of the state before the first step, which older archives lack.
    """
    given = manifest(segment, **fields)
    lines = [json.dumps(row) for row in rows(given["steps"], changes)] if lines is None else lines
    members = {STATES: "\n".join(lines).encode(), **({} if before is None else {BEFORE: before.encode()})}
    for number, step in enumerate(given["key_frames"]):
        members[f"{FRAMES}{step:04d}.png"] = picture(number)
    digests = {name: sha256(raw + (members_of or "").encode()) for name, raw in members.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(MANIFEST, SegmentManifest.model_validate({**given, "members": digests}).to_bytes())
        for name, raw in members.items():
            file.writestr(name, raw)
    return out.getvalue()


async def recorded(store: Store, raw: bytes, segment: str = "s1", epoch: int = 0, run: RunId = RUN) -> Envelope:
    """Put an archive into the store, as a recorder does, and return the event that announces it."""
    episode, name = EpisodeId("e1"), SegmentId(segment)
    key = keys.segment(run, epoch, episode, name)
    digest = await store.create(key, raw)
    data = SegmentReady(run=run, epoch=epoch, key=key, digest=Digest(digest), episode=episode, segment=name)
    return wrap(data, source="trainer")
