"""segment.ready -> judges -> score object -> scores.ready. The score object, created once, is the commit.

A segment whose score exists costs no call. A route that gives nothing makes the segment come back later, with what the
other judges said kept; when the route has been silent for `patience_s`, or the event will not come again, that judge
abstains. A segment that cannot be read is dead, and says why.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import structlog

from services.judge import telemetry
from services.judge.domain.ledger_rows import segment_row
from services.judge.domain.phases import DimensionWeights, weighted_mean
from services.judge.domain.vote_merge import unanimous_share
from services.judge.service.epoch_ledger import EpochLedger
from services.judge.service.ledger_store import LedgerStore
from services.judge.service.loader import LoadedSegment, SegmentLoader
from services.judge.service.monitor import JudgeMonitor
from services.judge.service.partial_results import PartialResult, PartialResultStore
from services.judge.service.pool import JudgePool, PoolResult
from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ScoresReady, ScoreStatus, SegmentReady
from shared.contracts.scores import JudgeResult, SegmentScores, values_of
from shared.errors import ContractError, Permanent, Transient
from shared.process.failpoints import failpoint
from shared.store import keys
from shared.store.port import AlreadyExists, NotFound, Store

SOURCE = "judge"
log = structlog.get_logger(__name__)


class Handlers:
    """The judge's handlers. Everything they need is given; they own no connection."""

    def __init__(
        self,
        store: Store,
        pool: JudgePool,
        loader: SegmentLoader,
        ledgers: LedgerStore,
        monitor: JudgeMonitor | None,
        *,
        rubric: str,
        weights: DimensionWeights,
        min_weight: float,
        patience_s: float,
    ) -> None:
        self._store, self._pool, self._loader, self._ledgers, self._monitor = store, pool, loader, ledgers, monitor
        self._partial_results = PartialResultStore(store, rubric)
        self._rubric, self._weights = rubric, weights
        self._min_weight, self._patience_s = min_weight, patience_s
        self._in_work: set[str] = set()

    async def segment_ready(self, event: Envelope) -> Sequence[Envelope]:
        """Judge the segment, unless that was done before or is being done."""
        data = _segment(event)
        key = self._score_key(data)
        if key in self._in_work:
            # The reconciler rings again while judges are slow: the delivery that is in work gives the answer, and if
            # it fails, it comes back.
            return []
        self._in_work.add(key)
        try:
            announced = await self._existing_score(data, event)
            return [announced or await self._judge_segment(data, event)]
        finally:
            self._in_work.remove(key)

    async def segment_dead(self, event: Envelope, reason: str) -> Sequence[Envelope]:
        """Record that nothing more will be said of a segment, so that its epoch is complete without it.

        If some judges spoke, or could have, that is the outcome; only a segment that cannot be read is dead.
        """
        data = _segment(event)
        announced = await self._existing_score(data, event)
        if announced is not None:
            return [announced]
        with suppress(Permanent):  # it cannot be read, or no longer
            partial = await self._partial_results.load(data)
            if partial is not None:
                return [await self._conclude_partial(data, event, partial, reason)]
        scores = SegmentScores(**_ids(data), rubric=self._rubric, status="dead", error=reason[:500], created=_now())
        ready, _ = await self._commit(data, scores, event)
        return [ready]

    async def _judge_segment(self, data: SegmentReady, event: Envelope) -> Envelope:
        """The event of a segment that had no score."""
        ledger = await self._ledgers.open(data.run, data.epoch)
        with ledger.pinned(), telemetry.SEGMENT_SECONDS.time():
            loaded = await self._loader.load(data.run, data.segment, data.key, data.digest)
            partial = await self._partial_results.load(data)
            pool_result = await self._pool.evaluate(
                loaded.judge_input, ledger.budget, partial.results if partial else ()
            )
            if pool_result.absent:
                await self._defer(data, pool_result, partial)
            ready = await self._conclude(data, event, loaded, pool_result, ledger)
        if partial is not None:
            await self._partial_results.delete(data)
        return ready

    async def _conclude_partial(
        self, data: SegmentReady, event: Envelope, partial: PartialResult, reason: str
    ) -> Envelope:
        """The event of a segment whose other judges are not waited for any longer."""
        ledger = await self._ledgers.open(data.run, data.epoch)
        with ledger.pinned():
            loaded = await self._loader.load(data.run, data.segment, data.key, data.digest)
            pool_result = self._pool.without(partial.results, reason)
            ready = await self._conclude(data, event, loaded, pool_result, ledger)
        await self._partial_results.delete(data)
        return ready

    async def _defer(self, data: SegmentReady, pool_result: PoolResult, partial: PartialResult | None) -> None:
        """While patience lasts, keep what there is and raise Transient."""
        since = partial.since if partial is not None else _now()
        # A route that answered other calls meanwhile is busy, not away: its silence counts, not the segment's wait.
        if min((_now() - since).total_seconds(), pool_result.seconds_since_response) < self._patience_s:
            await self._partial_results.save(data, PartialResult(since=since, results=list(pool_result.results)))
            raise Transient("; ".join(pool_result.absent.values())[:400])

    async def _conclude(
        self, data: SegmentReady, event: Envelope, loaded: LoadedSegment, pool_result: PoolResult, ledger: EpochLedger
    ) -> Envelope:
        """Commit the score of what was said; judges that are absent abstain."""
        if pool_result.absent:
            log.warning("judged without a route", absent=pool_result.absent)
        scores = self._scores(data, loaded, self._pool.results(pool_result))
        ready, ours = await self._commit(data, scores, event)
        if not ours:
            return ready  # whose votes count notes them
        ledger.record(row=segment_row(scores, loaded.manifest))
        if self._monitor is not None:
            self._monitor.on_score_committed(loaded.judge_input, scores, ledger)
        return ready

    def _scores(self, data: SegmentReady, loaded: LoadedSegment, results: list[JudgeResult]) -> SegmentScores:
        """Merge the judges' results by the weights of the segment's phase."""
        weights = (loaded.phase.weights or self._weights).as_dict()
        weighted, share = weighted_mean(weights, values_of(results))
        status: ScoreStatus = "judged" if weighted is not None and share >= self._min_weight else "abstained"
        return SegmentScores(
            **_ids(data),
            rubric=self._rubric,
            status=status,
            judges=results,
            phase=loaded.phase.name,
            weights=weights,
            weighted=weighted if status == "judged" else None,
            agreement=unanimous_share(results),
            created=_now(),
        )

    async def _commit(self, data: SegmentReady, scores: SegmentScores, event: Envelope) -> tuple[Envelope, bool]:
        """Create the score object. False: another replica was first, and its object is the one that counts."""
        failpoint("judge.before_score")
        raw = scores.to_bytes()
        try:
            digest = await self._store.create(self._score_key(data), raw)
        except AlreadyExists:
            announced = await self._existing_score(data, event)
            if announced is None:
                raise Transient("the score object exists, but cannot be read yet") from None
            # A create whose answer was lost, and which the store's client repeated, finds our own object.
            ours = isinstance(announced.data, ScoresReady) and announced.data.digest == sha256(raw)
            return announced, ours
        failpoint("judge.after_score")
        telemetry.SEGMENTS.labels(scores.status).inc()
        return self._ready(data, digest, scores.status, event), True

    async def _existing_score(self, data: SegmentReady, event: Envelope) -> Envelope | None:
        """The event of a score that exists already, or None. Whoever made it may have died before cleaning up."""
        try:
            raw = await self._store.get(self._score_key(data))
        except NotFound:
            return None
        await self._partial_results.delete(data)
        return self._ready(data, sha256(raw), SegmentScores.from_bytes(raw).status, event)

    def _ready(self, data: SegmentReady, digest: str, status: ScoreStatus, event: Envelope) -> Envelope:
        ready = ScoresReady.model_validate(
            {
                "run": data.run,
                "epoch": data.epoch,
                "key": self._score_key(data),
                "digest": digest,
                "segment": data.segment,
                "status": status,
            }
        )
        return wrap(ready, source=SOURCE, fence=event.fence, traceparent=event.traceparent)

    def _score_key(self, data: SegmentReady) -> str:
        return keys.score(data.run, data.epoch, data.segment, self._rubric)


def _segment(event: Envelope) -> SegmentReady:
    if not isinstance(event.data, SegmentReady):
        raise ContractError(f"the judge takes segment.ready, not {event.type}")
    return event.data


def _ids(data: SegmentReady) -> dict[str, object]:
    return {
        "run": data.run,
        "epoch": data.epoch,
        "episode": data.episode,
        "segment": data.segment,
        "segment_key": data.key,
        "segment_digest": data.digest,
    }


def _now() -> datetime:
    return datetime.now(UTC)
