"""Collects the data of a report from the store: summary, videos with their votes, and a picture of each room."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from services.coordinator.domain.room_map import RoomMap, room_map
from services.coordinator.readmodels.archived_rooms import read_archived_rooms
from services.coordinator.readmodels.segment_archives import SegmentArchives
from shared.contracts.epoch import ExploredArchive
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow, RunSummary
from shared.contracts.scores import SegmentScores
from shared.errors import ContractError, Permanent
from shared.state.scores import ScoreReader
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import NotFound, Store

T = TypeVar("T")
MAX_SEGMENTS: Final = 400  # archives read for the map; of more segments, an even sample
MAX_EPOCHS: Final = 12  # whose scores are read to find the best play: the first, and those of the best mean score
MAX_TRIES: Final = 60  # segments per epoch, best first, of which a video is looked for
SUMMARY_TIMEOUT_S: Final = 30.0  # the coordinator retries a failed write of the summary every 10 s
POLL_S: Final = 0.1
MAX_VIDEO: Final = 8 * 1024 * 1024  # bytes embedded in the page


@dataclass(frozen=True, slots=True)
class ReportedPlay:
    """A segment with its votes, and its video or, without one, its key frames as PNG."""

    scores: SegmentScores
    video: bytes | None
    frames: tuple[bytes, ...] = ()


@dataclass(slots=True)
class ReportData:
    """Everything that a report shows. `unreadable` are the keys of skipped objects.

    `first` is the best play of the first judged epoch, `best` that of the best epochs; segments with a video come
    before others. Both are None if nothing was judged, and `first` also if it is the best. `pictures` has one PNG per
    room that has a key frame. `explored` is the exploration with which the run began.
    """

    summary: RunSummary
    rooms: RoomMap
    pictures: dict[tuple[int, int], bytes] = field(default_factory=dict)
    first: ReportedPlay | None = None
    best: ReportedPlay | None = None
    explored: ExploredArchive | None = None
    unreadable: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[EpochRow]:
        """Finished epochs."""
        return self.summary.epochs


async def collect_report_data(store: Store, run: RunId, state: str | None = None) -> ReportData:
    """Collect the data of a run; NotFound without a summary. With `state`, wait until the summary has that state."""
    summary = await _summary(store, run, state, time.monotonic() + SUMMARY_TIMEOUT_S)
    data = await _with_rooms(store, summary)
    data.explored = await _explored(store, run, data.unreadable)
    scores = await _scores(store, summary, data.unreadable)
    earliest = min((one.epoch for one in scores), default=0)
    data.best = await _best_play(store, scores)
    data.first = await _best_play(store, [one for one in scores if one.epoch == earliest])
    if data.first is not None and data.best is not None and data.first.scores.segment == data.best.scores.segment:
        data.first = None
    return data


async def _summary(store: Store, run: RunId, state: str | None, deadline: float) -> RunSummary:
    """Read the summary. The coordinator ends a run first and writes its final summary a moment later."""
    while True:
        try:
            summary = RunSummary.from_bytes(await store.get(keys.run_summary(run)))
            if state in (None, summary.state) or time.monotonic() > deadline:
                return summary
        except NotFound as error:
            if state is None or time.monotonic() > deadline:
                raise NotFound(f"run {run} has no summary yet: it appears within seconds of the start") from error
        await asyncio.sleep(POLL_S)


async def _explored(store: Store, run: RunId, unreadable: list[str]) -> ExploredArchive | None:
    key = keys.exploration(run, ended=True)
    try:
        return ExploredArchive.from_bytes(await store.get(key))
    except NotFound:
        return None
    except ContractError:
        unreadable.append(key)
        return None


async def _with_rooms(store: Store, summary: RunSummary) -> ReportData:
    """The steps in each room over an even sample of the run's segments, with a key frame of each room."""
    archives, places = SegmentArchives(store), await list_segments(store, summary.run)
    sample = _even_sample(list(places), MAX_SEGMENTS)
    summaries = await archives.summaries(sample)
    read = [(places[entry], one) for entry, one in summaries.items()]
    newest = max((row.epoch for row in summary.epochs), default=0)
    found = room_map(len(places), read, await read_archived_rooms(store, summary.run, newest))
    data = ReportData(summary, found, unreadable=[entry.key for entry in sample if entry not in summaries])
    for room in found.rooms:
        place = room.place(summary.run)
        if place is not None and room.picture is not None:
            data.pictures[room.group, room.room] = await archives.picture(place, room.picture)
    return data


async def _scores(store: Store, summary: RunSummary, unreadable: list[str]) -> list[SegmentScores]:
    """The scores of the first judged epoch and of the epochs that were scored best; best score first."""
    judged = [row for row in summary.epochs if row.score_mean is not None]
    best = sorted(judged[1:], key=lambda row: -(row.score_mean or 0.0))[: MAX_EPOCHS - 1]
    reader, found = ScoreReader(store), list[SegmentScores]()
    for row in [*judged[:1], *best]:
        objects = await reader.read_epoch(summary.run, row.epoch)
        unreadable += [key for key, one in objects.items() if one is None]
        found += [one.scores for one in objects.values() if one is not None and one.scores.weighted is not None]
    return sorted(found, key=lambda one: -(one.weighted or 0.0))


async def _best_play(store: Store, scores: Sequence[SegmentScores]) -> ReportedPlay | None:
    """The best of these with a video; if none has one, the best with its key frames."""
    tries: Counter[int] = Counter()
    for one in scores:
        tries[one.epoch] += 1
        if tries[one.epoch] > MAX_TRIES:
            continue
        video = await SegmentArchives(store).video(place_of(one))
        if video is not None and len(video) <= MAX_VIDEO:
            return ReportedPlay(one, video)
    return await _pictured(store, scores[0]) if scores else None


async def _pictured(store: Store, scores: SegmentScores) -> ReportedPlay:
    archives = SegmentArchives(store)
    try:
        summary, _ = await archives.detail(place_of(scores))
        frames = [await archives.picture(place_of(scores), number) for number in range(summary.frames)]
    except Permanent:  # expired or damaged: its votes are still known
        frames = []
    return ReportedPlay(scores, None, tuple(frames))


def place_of(scores: SegmentScores) -> keys.SegmentPlace:
    """The segment that these scores are about."""
    return keys.SegmentPlace(scores.run, scores.epoch, scores.episode, scores.segment)


def _even_sample(items: Sequence[T], most: int) -> Sequence[T]:
    return items[:: math.ceil(len(items) / most) or 1]
