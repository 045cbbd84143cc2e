"""Reads recorded segments for the live page: summaries of an epoch, pictures, timelines. Never emulates."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import structlog

from services.coordinator.domain.segment_summary import (
    SegmentSummary,
    TimelineEntry,
    archive_timeline,
    frame_names,
    summarise,
)
from shared.contracts.archive import SegmentArchive, open_archive
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.ids import RunId
from shared.errors import ContractError, Permanent
from shared.process.bounded_cache import BoundedCache
from shared.store import keys
from shared.store.port import NotFound, ObjectEntry, Store
from shared.telemetry.log_once import LogOnce

T = TypeVar("T")
PARALLEL: Final = 8  # archives in memory at the same time; each has at most a few megabytes
MAX_SUMMARIES: Final = 4_000  # of about 2 KB
MAX_ARCHIVES: Final = 32  # that stay in memory, because a page shows several pictures of one segment
MANIFEST: Final = "manifest.json"  # of an export
VIDEO: Final = "video.mp4"
POTENTIAL: Final = "potential.json"
MAX_CACHED_BYTES: Final = 512 * 1024  # bytes
log = structlog.get_logger(__name__)


class SegmentArchives:
    """Archives of all runs. They never change; one that was written again has another entry."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slots = asyncio.Semaphore(PARALLEL)
        self._summaries: BoundedCache[ObjectEntry, SegmentSummary] = BoundedCache(MAX_SUMMARIES)
        self._archives: BoundedCache[str, bytes] = BoundedCache(MAX_ARCHIVES)
        self._problems: LogOnce[str] = LogOnce(log.error, "segment archive unreadable")

    async def summaries(self, entries: Sequence[ObjectEntry]) -> dict[ObjectEntry, SegmentSummary]:
        """The summaries of the readable archives among these."""
        found = await asyncio.gather(*(self._summary(entry) for entry in entries))
        return {entry: summary for entry, summary in zip(entries, found, strict=True) if summary is not None}

    async def picture(self, place: keys.SegmentPlace, number: int) -> bytes:
        """Key frame `number` of a segment as PNG; NotFound if it has fewer."""

        def read(archive: SegmentArchive) -> bytes:
            names = frame_names(archive.manifest)
            if number >= len(names):
                raise NotFound(f"segment {place.segment} has {len(names)} key frames, counted from 0")
            return archive.read(names[number])

        return await self._read(keys.segment(*place), read)

    async def detail(self, place: keys.SegmentPlace) -> tuple[SegmentSummary, list[TimelineEntry]]:
        """The summary and the timeline of a segment."""
        return await self._read(keys.segment(*place), lambda archive: (summarise(archive), archive_timeline(archive)))

    async def digest(self, place: keys.SegmentPlace) -> str:
        """SHA-256 of a segment's archive, without reading it if a note or the epoch's list names it; or NotFound."""
        key = keys.segment(*place)
        listed = [entry.key for entry in await self._store.list(f"{key.rpartition('/')[0]}/")]
        if key not in listed:
            raise _absent(place)
        known = keys.noted_digests(listed).get(key) or await self._listed_digest(place)
        return known or sha256(await self._store.get(key))

    async def video(self, place: keys.SegmentPlace) -> bytes | None:
        """The exported video of a segment as MP4, or None without one."""
        return await self._optional(keys.export_prefix(*place) + VIDEO)

    async def awaited_video(self, place: keys.SegmentPlace) -> bytes | None:
        """The exported video of a segment as MP4, or None before its export; NotFound if its export has none."""
        video = await self.video(place)
        if video is not None or not await self._store.exists(keys.export_prefix(*place) + MANIFEST):
            return video
        # The manifest is written last, and no later export replaces it: a video that is missing now never comes.
        video = await self.video(place)
        if video is None:
            raise NotFound(
                f"segment {place.segment} was exported without a video (ZELDA_EXPORT__VIDEO): make one with "
                f"`zelda export segments {place.run} --epoch {place.epoch} --segment {place.segment}`"
            )
        return video

    async def potential(self, place: keys.SegmentPlace) -> list[float]:
        """Phi of each state of a segment; empty before its export, and for a segment that nothing shaped."""
        raw = await self._optional(f"{keys.export_prefix(*place)}{POTENTIAL}")
        try:
            return [float(value) for value in json.loads(raw)] if raw is not None else []
        except (TypeError, ValueError) as error:
            raise ContractError(f"segment {place.segment}: {POTENTIAL} is not a list of numbers") from error

    def forget(self, run: RunId) -> None:
        """Free the memory of a deleted run."""
        prefix = keys.segments_prefix(run)
        for key in self._archives:
            if key.startswith(prefix):
                self._archives.pop(key)
        for entry in self._summaries:
            if entry.key.startswith(prefix):
                self._summaries.pop(entry)

    async def _listed_digest(self, place: keys.SegmentPlace) -> str | None:
        """The digest in the list of the finished epoch; None before its end, and where the list cannot be read."""
        raw = await self._optional(keys.epoch_finished(place.run, place.epoch))
        try:
            segments = EpochFinishedRecord.from_bytes(raw).segments if raw is not None else []
        except ContractError:
            return None
        return next((one.digest for one in segments if one.segment == place.segment), None)

    async def _optional(self, key: str) -> bytes | None:
        try:
            return await self._store.get(key)
        except NotFound:
            return None

    async def _summary(self, entry: ObjectEntry) -> SegmentSummary | None:
        known = self._summaries.get(entry)
        if known is not None:
            return known
        try:
            return self._summaries.put(entry, await self._read(entry.key, summarise))
        except Permanent as error:
            self._problems.report(entry.key, error, key=entry.key)
            return None

    async def _read(self, key: str, work: Callable[[SegmentArchive], T]) -> T:
        async with self._slots:
            raw = self._archives.get(key) or await self._archive(key)
            if len(raw) <= MAX_CACHED_BYTES:
                self._archives.put(key, raw)
            return await asyncio.to_thread(_with_archive, raw, work)

    async def _archive(self, key: str) -> bytes:
        try:
            return await self._store.get(key)
        except NotFound as error:
            place = keys.segment_place(key)
            if place is None:
                raise
            raise _absent(place) from error  # a key of the store says nothing to a client


def _absent(place: keys.SegmentPlace) -> NotFound:
    return NotFound(f"run {place.run} has no segment {place.segment} in epoch {place.epoch}")


def _with_archive(raw: bytes, work: Callable[[SegmentArchive], T]) -> T:
    with open_archive(raw) as archive:
        return work(archive)
