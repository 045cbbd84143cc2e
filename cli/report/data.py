"""Gathers what a report shows from the store: summary, scores, where the agent was, and the best segment's video."""

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

MAX_SEGMENTS: Final = 400  # archives read for the map; of more, every n-th is taken
SUMMARY_TIMEOUT_S: Final = 30.0  # last figures that could not be written are tried again every 10 s
POLL_S: Final = 0.1
MAX_VIDEO: Final = 8 * 1024 * 1024  # bytes embedded in the page

RoomSteps = Counter[tuple[int, int]]
"""Steps spent in each (group, room)."""


@dataclass(frozen=True, slots=True)
class BestSegment:
    """The segment that the judges liked most among those with a video."""

    scores: SegmentScores
    video: bytes


@dataclass(slots=True)
class ReportData:
    """All that a report shows. `left_out` are the objects that could not be read: they cost no other its place."""

    summary: RunSummary
    scores: dict[int, list[SegmentScores]] = field(default_factory=dict)
    rooms: dict[int, RoomSteps] = field(default_factory=dict)
    best: BestSegment | None = None
    left_out: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[EpochRow]:
        """Finished epochs."""
        return self.summary.epochs


async def collect_report_data(store: Store, run: RunId, state: str | None = None) -> ReportData:
    """The material of a run, of one that ended once its summary says so; NotFound if there is none."""
    material = ReportData(await _summary(store, run, state, time.monotonic() + SUMMARY_TIMEOUT_S))
    reader = ScoreReader(store)
    for row in material.rows:
        found = await reader.read_epoch(run, row.epoch)
        material.left_out += [key for key, one in found.items() if one is None]
        material.scores[row.epoch] = [one.scores for one in found.values() if one is not None]
        material.rooms[row.epoch] = await _rooms(store, run, row.epoch, material.left_out)
    material.best = await _best(store, run, material)
    return material


async def _summary(store: Store, run: RunId, state: str | None, deadline: float) -> RunSummary:
    """The run's summary. The record of a run says first that it ended; its last figures are written a moment later."""
    while True:
        try:
            summary = RunSummary.from_bytes(await store.get(keys.run_summary(run)))
            if state in (None, summary.state) or time.monotonic() > deadline:
                return summary
        except NotFound:
            if state is None or time.monotonic() > deadline:
                raise
        await asyncio.sleep(POLL_S)


async def _rooms(store: Store, run: RunId, epoch: int, left_out: list[str]) -> RoomSteps:
    names = [entry.key for entry in await list_segments(store, run, epoch)]
    found: RoomSteps = Counter()
    for key in names[:: math.ceil(len(names) / MAX_SEGMENTS) or 1]:
        try:
            found += count_rooms(await store.get(key))
        except Permanent as error:  # damaged, foreign, or expired since the list was made
            log.error("segment archive refused", key=key, error=str(error))
            left_out.append(key)
    return found


def count_rooms(archive: bytes) -> RoomSteps:
    """Steps in each room, from one segment's archive. ContractError or DigestMismatch if it is damaged."""
    with open_archive(archive) as segment:
        rows = (json.loads(line) for line in segment.read(STATES).splitlines())
        return Counter((int(row["group"]), int(row["room"])) for row in rows)


async def _best(store: Store, run: RunId, material: ReportData) -> BestSegment | None:
    judged = [scores for epoch in material.scores.values() for scores in epoch if scores.weighted is not None]
    for scores in sorted(judged, key=lambda one: one.weighted or 0.0, reverse=True):
        prefix = keys.export_prefix(run, scores.epoch, scores.episode, scores.segment)
        try:
            video = await store.get(f"{prefix}video.mp4")
        except NotFound:
            continue
        if len(video) <= MAX_VIDEO:
            return BestSegment(scores, video)
    return None
