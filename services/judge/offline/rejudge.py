"""Judges recorded segments of a run outside the ring: again with another rubric or model, or for the first time.

Works on the store alone, without any bus, with the same handlers as the service; what has a score under the rubric
version is left alone, so that an interrupted pass goes on where it was.
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
from shared.store import keys
from shared.store.port import NotFound, Store

RETRY_S = 2.0  # pause before a segment is tried again when the route or the store was away
log = structlog.get_logger(__name__)


@dataclass
class RejudgeCounts:
    """What a pass did: segments by status, and those that had a score before."""

    judged: int = 0
    abstained: int = 0
    dead: int = 0
    before: int = 0

    def add(self, status: str) -> None:
        """Count one outcome."""
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

    `on_progress` hears of every outcome, and, with the reason, whenever a segment has to be tried again.
    """
    done, free = RejudgeCounts(), asyncio.Semaphore(slots)
    await runtime.probe_routes(retry=False)
    keeping = asyncio.create_task(runtime.ledgers.run_flush_loop())

    async def one(event: Envelope) -> None:
        async with free:
            done.add(await _rejudge_with_retries(store, runtime, event, lambda trouble: on_progress(done, trouble)))
            on_progress(done, "")

    try:
        events = [event async for event in segments(store, run, epoch)]  # a store that is away ends it here
        async with asyncio.TaskGroup() as group:
            for event in events:
                group.create_task(one(event))
    finally:
        keeping.cancel()
        await runtime.close()
    return done


async def segments(store: Store, run: RunId, epoch: int | None) -> AsyncIterator[Envelope]:
    """The event of every recorded segment, in the order of their keys."""
    digests: dict[int, dict[str, Digest]] = {}
    for entry in await store.list(keys.segments_prefix(run, epoch)):
        data = await _ready(store, run, entry.key, digests)
        if data is not None:
            yield wrap(data, source="judge")


async def _ready(store: Store, run: RunId, key: str, digests: dict[int, dict[str, Digest]]) -> SegmentReady | None:
    place = keys.segment_place(key)
    if place is None:
        log.warning("object passed over: no segment has such a name", run=run, key=key)
        return None
    if place.epoch not in digests:
        digests[place.epoch] = await _epoch_digests(store, run, place.epoch)
    digest = digests[place.epoch].get(key) or Digest(sha256(await store.get(key)))
    return SegmentReady(key=key, digest=digest, **place._asdict())


async def _epoch_digests(store: Store, run: RunId, epoch: int) -> dict[str, Digest]:
    """Digests of an epoch's segments as its account has them; nothing while the epoch runs."""
    key = keys.epoch_finished(run, epoch)
    try:
        account = EpochFinishedRecord.from_bytes(await store.get(key))
    except NotFound:
        return {}
    except ContractError as error:
        log.error("account of the epoch not readable", key=key, error=str(error))
        return {}
    return {ref.key: ref.digest for ref in account.segments}


async def _rejudge_with_retries(
    store: Store, runtime: JudgeRuntime, event: Envelope, held_up: Callable[[str], None]
) -> str:
    while True:
        try:
            return await _rejudge_segment(store, runtime, event)
        except Transient as error:
            held_up(str(error))
            await asyncio.sleep(RETRY_S)


async def _rejudge_segment(store: Store, runtime: JudgeRuntime, event: Envelope) -> str:
    data = event.data
    assert isinstance(data, SegmentReady)
    if await store.exists(keys.score(data.run, data.epoch, data.segment, runtime.file.rubric)):
        return "before"
    try:
        return _status(await runtime.handlers.segment_ready(event))
    except Permanent as error:
        return _status(await runtime.handlers.segment_dead(event, str(error)))


def _status(events: Sequence[Envelope]) -> str:
    (data,) = [event.data for event in events if isinstance(event.data, ScoresReady)]
    return data.status
