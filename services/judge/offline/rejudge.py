"""Judges recorded segments outside the ring: again under another rubric version, or for the first time.

Needs the store but no bus, and uses the service's handlers. A segment with a score under the rubric version is skipped,
so that an interrupted pass continues.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import structlog

from services.judge.runtime import JudgeRuntime
from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.events import ScoresReady, SegmentReady
from shared.contracts.ids import Digest, RunId
from shared.errors import ContractError, Permanent, Transient
from shared.state.deleted_runs import RunDeleted
from shared.state.scores import ScoreReader
from shared.store import keys
from shared.store.port import NotFound, Store

RETRY_S = 2.0  # pause before a retry when the route or the store is unavailable
DELETED, UNREADABLE = "deleted", "unreadable"  # a segment of a deleted run, and one whose score is damaged
log = structlog.get_logger(__name__)


class UnreadableScores(Permanent):
    """Segments have score objects that cannot be read: a pass leaves them, as it leaves any score."""

    def __init__(self, first: str, number: int) -> None:
        more = f" and {number - 1} more" if number > 1 else ""
        super().__init__(f"{first}{more}: not readable as scores; delete them, and judge the segments again.")


@dataclass
class RejudgeCounts:
    """Segments of a pass by status; `before` counts those that already had a score."""

    judged: int = 0
    abstained: int = 0
    dead: int = 0
    before: int = 0

    def add(self, status: str) -> None:
        """Count one segment."""
        setattr(self, status, getattr(self, status) + 1)


async def judge_run(
    store: Store,
    runtime: JudgeRuntime,
    run: RunId,
    epoch: int | None,
    *,
    slots: int,
    on_progress: Callable[[RejudgeCounts, str], None],
) -> RejudgeCounts:
    """Judge all recorded segments of a run, or of one epoch, `slots` at a time.

    Raises RunDeleted if it is deleted meanwhile, UnreadableScores after the pass if a segment has a damaged score.
    `on_progress` gets the counts after each segment, and the reason (else "") before each retry.
    """
    counts, slot = RejudgeCounts(), asyncio.Semaphore(slots)
    left: dict[str, list[str]] = {DELETED: [], UNREADABLE: []}  # keys of scores that the pass cannot write
    await runtime.probe_routes(retry=False)
    flush_loop = asyncio.create_task(runtime.ledgers.run_flush_loop())

    async def one(event: Envelope) -> None:
        async with slot:
            status = await _rejudge_with_retries(store, runtime, event, lambda reason: on_progress(counts, reason))
            if status in left:
                left[status].append(_score_key(runtime, event))
            else:
                counts.add(status)
                on_progress(counts, "")

    try:
        events = [event async for event in segments(store, run, epoch)]  # an unavailable store ends the pass here
        async with asyncio.TaskGroup() as group:
            for event in events:
                group.create_task(one(event))
    finally:
        flush_loop.cancel()
        await runtime.close()
    if left[DELETED]:
        raise RunDeleted(run)
    if left[UNREADABLE]:
        raise UnreadableScores(min(left[UNREADABLE]), len(left[UNREADABLE]))
    return counts


async def segments(store: Store, run: RunId, epoch: int | None) -> AsyncIterator[Envelope]:
    """Yield the event of every recorded segment in order of their keys."""
    digests: dict[int, dict[str, Digest]] = {}
    listed = [entry.key for entry in await store.list(keys.segments_prefix(run, epoch))]
    noted = keys.noted_digests(listed)
    for key in listed:
        data = None if keys.is_digest_note(key) else await _segment_ready(store, run, key, digests, noted)
        if data is not None:
            yield wrap(data, source="judge")


async def _segment_ready(
    store: Store, run: RunId, key: str, digests: dict[int, dict[str, Digest]], noted: dict[str, Digest]
) -> SegmentReady | None:
    place = keys.segment_place(key)
    if place is None:
        log.warning("object skipped: not a segment key", run=run, key=key)
        return None
    if place.epoch not in digests:
        digests[place.epoch] = await _epoch_digests(store, run, place.epoch)
    digest = digests[place.epoch].get(key) or noted.get(key) or Digest(sha256(await store.get(key)))
    return SegmentReady(key=key, digest=digest, **place._asdict())


async def _epoch_digests(store: Store, run: RunId, epoch: int) -> dict[str, Digest]:
    """Return the segment digests of a finished epoch; empty while the epoch runs."""
    key = keys.epoch_finished(run, epoch)
    try:
        finished = EpochFinishedRecord.from_bytes(await store.get(key))
    except NotFound:
        return {}
    except ContractError as error:
        log.error("epoch record unreadable", key=key, error=str(error))
        return {}
    return {ref.key: ref.digest for ref in finished.segments}


async def _rejudge_with_retries(
    store: Store, runtime: JudgeRuntime, event: Envelope, on_retry: Callable[[str], None]
) -> str:
    while True:
        try:
            return await _rejudge_segment(store, runtime, event)
        except Transient as error:
            on_retry(str(error))
            await asyncio.sleep(RETRY_S)


async def _rejudge_segment(store: Store, runtime: JudgeRuntime, event: Envelope) -> str:
    """Return the segment's status. Nothing is written if its run was deleted, or over a damaged score."""
    try:
        return UNREADABLE if await ScoreReader(store).read(_score_key(runtime, event)) is None else "before"
    except NotFound:
        pass
    try:
        return _status(await runtime.handlers.segment_ready(event))
    except Permanent as error:
        return _status(await runtime.handlers.segment_dead(event, str(error)))


def _score_key(runtime: JudgeRuntime, event: Envelope) -> str:
    data = event.data
    assert isinstance(data, SegmentReady)
    return keys.score(data.run, data.epoch, data.segment, runtime.file.rubric)


def _status(events: Sequence[Envelope]) -> str:
    return next((event.data.status for event in events if isinstance(event.data, ScoresReady)), DELETED)
