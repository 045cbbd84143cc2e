"""segment.ready -> judges -> score object -> scores.ready. The score object, created once, is the commit.

A segment with a score costs no call. An unavailable route defers the segment: its event is redelivered, and the other
judges' results are kept. Once the route has been silent for `patience_s`, or after the last delivery, its judge
abstains. An unreadable segment is dead, with the reason.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import structlog

from services.judge import telemetry
from services.judge.config import weights_in
from services.judge.domain.ledger_rows import segment_row
from services.judge.domain.phases import DimensionWeights, weighted_mean
from services.judge.domain.vote_merge import unanimous_share
from services.judge.service.epoch_ledger import EpochLedger
from services.judge.service.gate_keeper import GateKeeper
from services.judge.service.ledger_store import LedgerStore
from services.judge.service.loader import LoadedSegment, SegmentLoader
from services.judge.service.monitor import JudgeMonitor
from services.judge.service.partial_results import PartialResult, PartialResultStore
from services.judge.service.pool import JudgePool, PoolResult
from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ScoresReady, ScoreStatus, SegmentReady
from shared.contracts.ids import JudgeName
from shared.contracts.scores import JudgeResult, SegmentScores, values_of
from shared.errors import ContractError, Permanent, Transient
from shared.process.failpoints import failpoint
from shared.process.in_progress import InProgress
from shared.state.deleted_runs import was_deleted
from shared.store import keys
from shared.store.port import AlreadyExists, NotFound, Store

SOURCE = "judge"
log = structlog.get_logger(__name__)


class Handlers:
    """The judge's event handlers. They own no connection."""

    def __init__(
        self,
        store: Store,
        pool: JudgePool,
        loader: SegmentLoader,
        ledgers: LedgerStore,
        monitor: JudgeMonitor | None,
        gates: GateKeeper,
        *,
        rubric: str,
        weights: DimensionWeights,
        min_weight: float,
        patience_s: float,
    ) -> None:
        self._store, self._pool, self._loader, self._ledgers, self._monitor = store, pool, loader, ledgers, monitor
        self._gates = gates
        self._partial_results = PartialResultStore(store, rubric)
        self._rubric, self._weights = rubric, weights
        self._min_weight, self._patience_s = min_weight, patience_s
        self._in_progress: InProgress[str] = InProgress()  # keys of scores

    async def segment_ready(self, event: Envelope) -> Sequence[Envelope]:
        """Judge the segment, unless it has a score or another delivery is judging it."""
        data = _segment(event)
        if not _names_own_archive(data):
            raise ContractError(f"segment.ready of {data.segment} names {data.key}, which is the key of another object")
        with self._in_progress.claim(self._score_key(data)) as claimed:
            if not claimed:
                # The reconciler republishes while judges are slow. The first delivery answers for both, and the bus
                # redelivers it if it fails.
                return []
            return [await self._existing_score(data, event) or await self._judge_segment(data, event)]

    async def segment_dead(self, event: Envelope, reason: str) -> Sequence[Envelope]:
        """Conclude a segment after its last delivery, so that its epoch can become complete.

        A readable segment that some judge saw keeps the results so far; any other is dead. A segment of a deleted run
        gets no score: nothing of the run may come back.
        """
        data = _segment(event)
        if not _names_own_archive(data):
            return []  # forged: a score would conclude a segment that was never recorded
        if await was_deleted(self._store, data.run):
            return []
        existing = await self._existing_score(data, event)
        if existing is not None:
            return [existing]
        with suppress(Permanent):  # the segment is unreadable or deleted
            partial = await self._partial_results.load(data)
            if partial is not None:
                return [await self._conclude_partial(data, event, partial, reason)]
        scores = SegmentScores(**_ids(data), rubric=self._rubric, status="dead", error=reason[:500], created=_now())
        ready, _ = await self._commit(data, scores, event)
        return [ready]

    async def _judge_segment(self, data: SegmentReady, event: Envelope) -> Envelope:
        """Run the judges, commit the score and return its event."""
        ledger = await self._ledgers.open(data.run, data.epoch)
        with ledger.pinned(), telemetry.SEGMENT_SECONDS.time():
            loaded = await self._loader.load(data.run, data.segment, data.key, data.digest)
            partial = await self._partial_results.load(data)
            known = partial.results if partial else ()
            result = await self._pool.evaluate(loaded.judge_input, ledger.budget, known)
            if result.absent:
                await self._defer(data, result, partial)
            ready = await self._conclude(data, event, loaded, result, ledger)
        if partial is not None:
            await self._partial_results.delete(data)
        return ready

    async def _conclude_partial(
        self, data: SegmentReady, event: Envelope, partial: PartialResult, reason: str
    ) -> Envelope:
        """Commit the results so far and give up on the absent judges."""
        ledger = await self._ledgers.open(data.run, data.epoch)
        with ledger.pinned():
            loaded = await self._loader.load(data.run, data.segment, data.key, data.digest)
            result = self._pool.without_absent(partial.results, reason)
            ready = await self._conclude(data, event, loaded, result, ledger)
        await self._partial_results.delete(data)
        return ready

    async def _defer(self, data: SegmentReady, result: PoolResult, partial: PartialResult | None) -> None:
        """While patience lasts, save the results so far and raise Transient."""
        since = partial.since if partial is not None else _now()
        # A route that answers other calls is busy, not away: its silence counts, not the segment's wait.
        if min((_now() - since).total_seconds(), result.seconds_since_response) < self._patience_s:
            await self._partial_results.save(data, PartialResult(since=since, results=list(result.results)))
            raise Transient("; ".join(result.absent.values())[:400])

    async def _conclude(
        self, data: SegmentReady, event: Envelope, loaded: LoadedSegment, result: PoolResult, ledger: EpochLedger
    ) -> Envelope:
        """Commit the score; absent judges abstain."""
        if result.absent:
            log.warning("segment judged without a route", absent=result.absent)
        gated = await self._gates.closed(data.run, data.epoch)
        scores = self._merge(data, loaded, self._pool.with_abstentions(result), gated)
        ready, ours = await self._commit(data, scores, event)
        if not ours:
            return ready  # the process whose score counts records it
        ledger.record(row=segment_row(scores, loaded.manifest))
        if self._monitor is not None:
            self._monitor.on_score_committed(loaded.judge_input, scores, ledger)
        return ready

    def _merge(
        self,
        data: SegmentReady,
        loaded: LoadedSegment,
        results: list[JudgeResult],
        gated: dict[JudgeName, list[str]],
    ) -> SegmentScores:
        """Merge the results of the judges that are not gated, by the weights of the segment's phase."""
        weights = weights_in(loaded.phase, self._weights).as_dict()
        counted = [result for result in results if result.judge not in gated]
        weighted, share = weighted_mean(weights, values_of(counted))
        status: ScoreStatus = "judged" if weighted is not None and share >= self._min_weight else "abstained"
        return SegmentScores(
            **_ids(data),
            rubric=self._rubric,
            status=status,
            judges=results,
            phase=loaded.phase.name,
            weights=weights,
            weighted=weighted if status == "judged" else None,
            agreement=unanimous_share(counted),
            gated={result.judge: gated[result.judge] for result in results if result.judge in gated},
            created=_now(),
        )

    async def _commit(self, data: SegmentReady, scores: SegmentScores, event: Envelope) -> tuple[Envelope, bool]:
        """Create the score object; return its event and whether the object is ours. The first commit wins."""
        failpoint("judge.before_score")
        raw = scores.to_bytes()
        try:
            digest = await self._store.create(self._score_key(data), raw)
        except AlreadyExists:
            existing = await self._existing_score(data, event)
            if existing is None:
                raise Transient("the score object exists but is not readable yet") from None
            # The store's client repeats a create whose response was lost, and then finds our own object.
            ours = isinstance(existing.data, ScoresReady) and existing.data.digest == sha256(raw)
            return existing, ours
        failpoint("judge.after_score")
        telemetry.SEGMENTS.labels(scores.status).inc()
        return self._scores_ready(data, digest, scores.status, event), True

    async def _existing_score(self, data: SegmentReady, event: Envelope) -> Envelope | None:
        """Return the event of an existing score, or None. Deletes a partial result that a crash left behind."""
        try:
            raw = await self._store.get(self._score_key(data))
        except NotFound:
            return None
        await self._partial_results.delete(data)
        return self._scores_ready(data, sha256(raw), SegmentScores.from_bytes(raw).status, event)

    def _scores_ready(self, data: SegmentReady, digest: str, status: ScoreStatus, event: Envelope) -> Envelope:
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
        return wrap(ready, source=SOURCE, fence=event.fence)

    def _score_key(self, data: SegmentReady) -> str:
        return keys.score(data.run, data.epoch, data.segment, self._rubric)


def _segment(event: Envelope) -> SegmentReady:
    if not isinstance(event.data, SegmentReady):
        raise ContractError(f"the judge consumes segment.ready, not {event.type}")
    return event.data


def _names_own_archive(data: SegmentReady) -> bool:
    """Whether the event's key is that of its own segment."""
    return data.key == keys.segment(data.run, data.epoch, data.episode, data.segment)


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
