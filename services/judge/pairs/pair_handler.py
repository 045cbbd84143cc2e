"""epoch.finished -> pairs of its judged segments are selected and compared, if its reward model learns from pairs.

Pairs wait for the epoch's scores: a rating is worth more to a budget than a comparison, and a model trains on rated
segments alone. Nothing is asked once the epoch's reward model exists. The reward model waits for the objects in the
store; no event announces them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import structlog

from services.judge import telemetry
from services.judge.domain.pair_selection import Opinions, select_pairs
from services.judge.pairs.pair_comparer import PairComparer
from services.judge.service.gate_keeper import GateKeeper
from services.judge.service.judge import Judge
from services.judge.service.ledger_store import LedgerStore
from services.judge.service.loader import SegmentLoader
from shared.contracts.envelope import Envelope
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.ids import SegmentId
from shared.contracts.judging.pairs import PairSelection, SelectedPair
from shared.errors import Permanent, Transient
from shared.process.in_progress import InProgress
from shared.state.deleted_runs import was_deleted
from shared.state.documents import read_document
from shared.state.label_deadline import deadline_of_run
from shared.state.pairs import PairReader
from shared.state.runs import RunRecords
from shared.state.scores import ScoreObject, ScoreReader
from shared.store import keys
from shared.store.create import create_or_read
from shared.store.port import Store

POLL_S: Final = 2.0  # interval of looking for the epoch's scores; its order is in no hurry
PAIRS_AT_ONCE: Final = 4  # so that segments of other runs find a free slot of the route
log = structlog.get_logger(__name__)

Values = dict[SegmentId, float | None]
"""Segment -> weighted score of each concluded segment, None unless it was judged."""


class PairHandler:
    """Selects and compares the pairs of epochs. `judge` is the judge of pairs; None: no judge rates progress."""

    def __init__(
        self,
        store: Store,
        judge: Judge | None,
        loader: SegmentLoader,
        ledgers: LedgerStore,
        gates: GateKeeper,
        rubric: str,
        stopping: Callable[[], bool] = lambda: False,
        poll_s: float = POLL_S,
    ) -> None:
        self._store, self._judge, self._ledgers, self._gates = store, judge, ledgers, gates
        self._rubric, self._stopping, self._poll_s = rubric, stopping, poll_s
        self._runs = RunRecords(store)
        self._scores, self._pairs = ScoreReader(store), PairReader(store, rubric)
        self._comparer = None if judge is None else PairComparer(store, judge, loader, rubric)
        self._in_progress: InProgress[str] = InProgress()  # keys of selections

    async def epoch_finished(self, event: Envelope) -> Sequence[Envelope]:
        """Compare the epoch's pairs that have no outcome yet."""
        with self._in_progress.claim(keys.pair_selection(event.runid, event.epoch, self._rubric)) as claimed:
            if claimed:
                await self._compare_epoch(event)
        return []

    async def epoch_dead(self, event: Envelope, reason: str) -> Sequence[Envelope]:
        """Give up after the last delivery: open pairs abstain, so that the reward model does not wait for them.

        Nothing is written for a deleted run: a deletion removes the pairs before the documents that are read here.
        """
        if await was_deleted(self._store, event.runid):
            return []
        with suppress(Permanent):  # the epoch's documents are gone or damaged: no model will be trained
            start, finished = await self._documents(event)
            if not _compares(start) or await self._has_model(finished):
                return []
            selection = await self._pairs.selection(finished.run, finished.epoch)
            if selection is None:
                await self._commit(finished, [], f"given up: {reason}")
            elif self._comparer is not None:
                for pair in await self._pairs.open_pairs(finished.run, finished.epoch) or []:
                    await self._comparer.abstain(finished.run, finished.epoch, pair, f"given up: {reason}")
        return []

    async def _compare_epoch(self, event: Envelope) -> None:
        start, finished = await self._documents(event)
        if not _compares(start):
            return
        selection = await self._pairs.selection(finished.run, finished.epoch)
        # A repeated event finds the selection made and waits no more: the scores that exist give the gaps.
        values = await self._wait_for_scores(finished, None if selection is not None else start.config.judge_deadline_s)
        if values is None:
            log.info("pairs deferred: run halted", run=finished.run, epoch=finished.epoch)
            return
        if selection is None:
            if await self._has_model(finished):
                log.info("pairs not selected: the reward model exists", run=finished.run, epoch=finished.epoch)
                return
            selection = await self._select(start, finished, values)
        if selection.pairs:
            await self._compare_all(finished, values)

    async def _documents(self, event: Envelope) -> tuple[EpochStart, EpochFinishedRecord]:
        finished = EpochFinishedRecord.from_bytes(await self._store.get(event.data.key, event.data.digest))
        start = await read_document(self._store, EpochStart, keys.epoch_start(event.runid, event.epoch))
        return start, finished

    async def _wait_for_scores(self, finished: EpochFinishedRecord, judge_deadline_s: float | None) -> Values | None:
        """Wait until every segment is concluded or the model exists, at most until the deadline.

        Without `judge_deadline_s` it does not wait. None if the run is halted at the deadline: a selection is final.
        """
        deadline = finished.created if judge_deadline_s is None else finished.deadline(judge_deadline_s)
        known: dict[str, ScoreObject | None] = {}  # each object is read once
        while True:
            known |= await self._scores.read_epoch(finished.run, finished.epoch, known)
            values = _values(finished, known)
            if len(values) == len(finished.segments) or judge_deadline_s is None or await self._has_model(finished):
                return values
            if datetime.now(UTC) >= deadline:
                later = await deadline_of_run(self._runs, finished, judge_deadline_s)
                if later is None or datetime.now(UTC) >= later:
                    return None if later is None else values
                deadline = later
            self._require_time()
            await asyncio.sleep(self._poll_s)

    async def _select(self, start: EpochStart, finished: EpochFinishedRecord, values: Values) -> PairSelection:
        """Select among the judged segments and commit the selection; the first one counts."""
        judge = None if self._judge is None else self._judge.spec.name
        if judge is None:
            return await self._commit(finished, [], "no judge rates progress, and that one compares pairs")
        if why := (await self._gates.closed(start.run, start.epoch)).get(judge):
            return await self._commit(finished, [], f"judge {judge} does not count: {'; '.join(why)}")
        judged = {one.segment: one for one in finished.segments if values.get(one.segment) is not None}
        opinions, note = await self._opinions(start, list(judged.values()))
        seed = f"{start.config.seed}/{start.epoch}/pairs"
        chosen = select_pairs(list(judged), start.config.labels.pairs, seed, opinions)
        pairs = [
            SelectedPair(
                first=judged[SegmentId(one.first)],
                second=judged[SegmentId(one.second)],
                disagreement=one.disagreement,
            )
            for one in chosen
        ]
        return await self._commit(finished, pairs, note, start if opinions is not None else None)

    async def _opinions(self, start: EpochStart, segments: Sequence[SegmentRef]) -> tuple[Opinions | None, str | None]:
        """What the members of the model that shaped the epoch think; or None, and why the draw is random."""
        from services.judge.pairs.disagreement import read_opinions

        if start.reward_model is None:
            return None, "a random draw: no reward model shaped this epoch"
        try:
            return await read_opinions(self._store, start.reward_model, segments), None
        except Permanent as error:
            log.warning("pairs drawn at random", run=start.run, epoch=start.epoch, error=str(error))
            return None, f"a random draw: {error}"

    async def _commit(
        self,
        finished: EpochFinishedRecord,
        pairs: list[SelectedPair],
        note: str | None,
        shaped: EpochStart | None = None,
    ) -> PairSelection:
        selection = PairSelection(
            run=finished.run,
            epoch=finished.epoch,
            rubric=self._rubric,
            model=shaped.reward_model if shaped is not None else None,
            pairs=pairs,
            note=None if note is None else note[:500],
            created=datetime.now(UTC),
        )
        key = keys.pair_selection(finished.run, finished.epoch, self._rubric)
        committed = await create_or_read(self._store, key, selection.to_bytes())
        log.info("pairs selected", run=finished.run, epoch=finished.epoch, pairs=len(pairs), note=note)
        return PairSelection.from_bytes(committed.data)

    async def _compare_all(self, finished: EpochFinishedRecord, values: Values) -> None:
        """Compare the open pairs, some at a time. Raises RouteUnavailable if the judge's route is away."""
        assert self._comparer is not None  # there are no pairs without a judge
        open_pairs = iter(await self._pairs.open_pairs(finished.run, finished.epoch) or [])
        ledger = await self._ledgers.open(finished.run, finished.epoch)
        failures: list[Exception] = []

        async def work(comparer: PairComparer) -> None:
            for pair in open_pairs:  # each worker takes the next one
                if failures or await self._has_model(finished):
                    return
                gap = (values.get(pair.first.segment) or 0.0) - (values.get(pair.second.segment) or 0.0)
                try:
                    self._require_time()
                    await comparer.compare(pair, ledger, gap)
                except Exception as error:
                    failures.append(error)  # the others end what they have begun: their calls are paid
                    return
                telemetry.PAIRS.inc()

        with ledger.pinned():
            await asyncio.gather(*(work(self._comparer) for _ in range(PAIRS_AT_ONCE)))
        if failures:
            raise failures[0]

    def _require_time(self) -> None:
        if self._stopping():
            raise Transient("the service is stopping: another one selects and compares the epoch's pairs")

    async def _has_model(self, finished: EpochFinishedRecord) -> bool:
        return await self._store.exists(keys.reward_model_card(finished.run, finished.epoch))


def _values(finished: EpochFinishedRecord, scores: Mapping[str, ScoreObject | None]) -> Values:
    """The concluded segments of the epoch's list."""
    values = {one.scores.segment: one.scores.weighted for one in scores.values() if one is not None}
    return {one.segment: values[one.segment] for one in finished.segments if one.segment in values}


def _compares(start: EpochStart) -> bool:
    return start.config.labels.compares and start.config.judges_epoch(start.epoch)
