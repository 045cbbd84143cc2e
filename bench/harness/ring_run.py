"""The run of `bench/ring.py`: 10,000 recorded segments of one epoch, and its documents.

The archives hold real observations of Bramble, cut to 32 steps to save disk space. A few are whole segments with a
milestone, which the exporter replays.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from bench.harness.segments import play, renamed
from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.events import EpochFinished
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.contracts.run import RunConfig, RunRecord
from shared.game.recording.segment import Members, Segment, pack_state, read_segment, write_segment
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.port import Store

RUN: Final = RunId("bench")
PER_EPISODE: Final = 10
STEPS: Final = 32
WHOLE: Final = 500  # one segment in 500 is whole
CONCURRENT_WRITES: Final = 200
CONFIG: Final = RunConfig(world="garden", epochs=1, epoch_steps=3_000_000, judge_deadline_s=3_600)


async def record(store: Store, number: int) -> list[SegmentRef]:
    """Create `number` archives, and a running run with its start order."""
    now = datetime.now(UTC)
    await RunRecords(store).create(
        RunRecord(run=RUN, revision=0, state="running", config=CONFIG, created=now, updated=now)
    )
    start = EpochStart(run=RUN, epoch=0, fence=1, config=CONFIG, created=now)
    await store.create(keys.epoch_start(RUN, 0), start.to_bytes())
    played = play("garden", 3_000, 0.4, seed=1)
    segments = [read_segment(raw) for raw in played]
    moving = next(raw for raw, one in zip(played, segments, strict=True) if _moves(one))
    found: list[SegmentRef] = []
    for first in range(0, number, CONCURRENT_WRITES):
        places = range(first, min(number, first + CONCURRENT_WRITES))
        raws = [renamed(moving, _names(n)[1]) if n % WHOLE == 0 else _cut(segments, n) for n in places]
        found += await asyncio.gather(*(_put(store, n, raw) for n, raw in zip(places, raws, strict=True)))
    return found


async def finish(store: Store, segments: list[SegmentRef]) -> Envelope:
    """Commit the epoch's `finished.json`. Returns its event."""
    key = keys.epoch_finished(RUN, 0)
    finished = EpochFinishedRecord(
        run=RUN,
        epoch=0,
        fence=1,
        steps=300 * len(segments),
        episodes=len(segments) // PER_EPISODE,
        seconds=1.0,
        segments=segments,
        checkpoint_key=f"{keys.checkpoint_prefix(RUN, 0)}checkpoint.zip",
        checkpoint_digest=Digest(sha256(b"")),
        created=datetime.now(UTC),
    )
    digest = Digest(await store.create(key, finished.to_bytes()))
    return wrap(EpochFinished(run=RUN, epoch=0, key=key, digest=digest, segments=len(segments)), source="bench")


def _moves(segment: Segment) -> bool:
    return segment.manifest.milestones_end > segment.manifest.milestones_start


def _names(number: int) -> tuple[EpisodeId, SegmentId]:
    return EpisodeId(f"e{number // PER_EPISODE:05d}"), SegmentId(f"s{number:06d}")


async def _put(store: Store, number: int, raw: bytes) -> SegmentRef:
    episode, segment = _names(number)
    key = keys.segment(RUN, 0, episode, segment)
    return SegmentRef(segment=segment, episode=episode, key=key, digest=Digest(await store.create(key, raw)))


def _cut(segments: list[Segment], number: int) -> bytes:
    """An archive with 32 steps of one of the played segments."""
    whole = segments[number % len(segments)]
    begin = number * 7 % (whole.manifest.steps - STEPS)
    facts: dict[str, Any] = whole.manifest.model_dump(exclude={"members"})
    episode, segment = _names(number)
    facts |= {"run": RUN, "epoch": 0, "episode": episode, "segment": segment, "steps": STEPS}
    facts |= {"index": number % PER_EPISODE, "milestones_end": whole.manifest.milestones_start, "key_frames": []}
    members = Members(
        lines=whole.states.splitlines()[begin : begin + STEPS],
        observations=whole.observations[begin : begin + STEPS + 1],
        actions=whole.actions[begin : begin + STEPS],
        prefix=np.zeros(0, np.uint8),
        packed_start=pack_state(b""),
        frames={},
    )
    return write_segment(facts, members)
