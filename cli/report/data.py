"""Collects the data of a report from the store: summary, scores, visited rooms, and the video of the best segment."""

import asyncio
import json
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import structlog

from shared.contracts.archive import open_archive
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow, RunSummary
from shared.contracts.scores import SegmentScores
from shared.contracts.segment import STATES
from shared.errors import Permanent
from shared.state.scores import ScoreReader
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import NotFound, Store

log = structlog.get_logger(__name__)

MAX_SEGMENTS: Final = 400  # archives read per epoch for the map; of more segments, an even sample
SUMMARY_TIMEOUT_S: Final = 30.0  # the coordinator retries a failed write of the summary every 10 s
POLL_S: Final = 0.1
MAX_VIDEO: Final = 8 * 1024 * 1024  # bytes embedded in the page

RoomSteps = Counter[tuple[int, int]]
"""Steps spent in each (group, room)."""


@dataclass(frozen=True, slots=True)
class BestSegment:
    """The segment with the highest score among those with a video."""

    scores: SegmentScores
    video: bytes


@dataclass(slots=True)
class ReportData:
    """Everything that a report shows. `unreadable` are the keys of skipped objects."""

    summary: RunSummary
    scores: dict[int, list[SegmentScores]] = field(default_factory=dict)
    rooms: dict[int, RoomSteps] = field(default_factory=dict)
    best: BestSegment | None = None
    unreadable: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[EpochRow]:
        """Finished epochs."""
        return self.summary.epochs


async def collect_report_data(store: Store, run: RunId, state: str | None = None) -> ReportData:
    """Collect the data of a run; NotFound without a summary. With `state`, wait until the summary has that state."""
    data = ReportData(await _summary(store, run, state, time.monotonic() + SUMMARY_TIMEOUT_S))
    reader = ScoreReader(store)
    for row in data.rows:
        found = await reader.read_epoch(run, row.epoch)
        data.unreadable += [key for key, one in found.items() if one is None]
        data.scores[row.epoch] = [one.scores for one in found.values() if one is not None]
        data.rooms[row.epoch] = await _rooms(store, run, row.epoch, data.unreadable)
    data.best = await _best(store, run, data)
    return data


async def _summary(store: Store, run: RunId, state: str | None, deadline: float) -> RunSummary:
    """Read the summary. The coordinator ends a run first and writes its final summary a moment later."""
    while True:
        try:
            summary = RunSummary.from_bytes(await store.get(keys.run_summary(run)))
            if state in (None, summary.state) or time.monotonic() > deadline:
                return summary
        except NotFound:
            if state is None or time.monotonic() > deadline:
                raise
        await asyncio.sleep(POLL_S)


async def _rooms(store: Store, run: RunId, epoch: int, unreadable: list[str]) -> RoomSteps:
    names = [entry.key for entry in await list_segments(store, run, epoch)]
    found: RoomSteps = Counter()
    for key in names[:: math.ceil(len(names) / MAX_SEGMENTS) or 1]:
        try:
            found += count_rooms(await store.get(key))
        except Permanent as error:  # damaged, of another program, or expired since it was listed
            log.error("segment archive skipped", key=key, error=str(error))
            unreadable.append(key)
    return found


def count_rooms(archive: bytes) -> RoomSteps:
    """Count the steps per room in a segment archive. ContractError or DigestMismatch if it is damaged."""
    with open_archive(archive) as segment:
        rows = (json.loads(line) for line in segment.read(STATES).splitlines())
        return Counter((int(row["group"]), int(row["room"])) for row in rows)


async def _best(store: Store, run: RunId, data: ReportData) -> BestSegment | None:
    judged = [scores for epoch in data.scores.values() for scores in epoch if scores.weighted is not None]
    for scores in sorted(judged, key=lambda one: one.weighted or 0.0, reverse=True):
        prefix = keys.export_prefix(run, scores.epoch, scores.episode, scores.segment)
        try:
            video = await store.get(f"{prefix}video.mp4")
        except NotFound:
            continue
        if len(video) <= MAX_VIDEO:
            return BestSegment(scores, video)
    return None
