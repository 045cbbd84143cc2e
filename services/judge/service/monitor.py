"""Monitors the judges at work: the canary set, judged again each epoch, and pairs compared in both orders.

Checks run in the background after a score is committed. A failed check costs a number in the report, never a score.
"""

import asyncio
import hashlib
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

import structlog
from opentelemetry.trace import SpanKind
from pydantic import Field

from services.judge.domain.judge_input import JudgeInput
from services.judge.domain.ledger_rows import CanaryRow, PairRow, mean_value, milestones_gained
from services.judge.service.epoch_ledger import EpochLedger
from services.judge.service.judge import Judge
from services.judge.service.loader import LoadedSegment, SegmentLoader
from services.judge.service.pool import JudgePool
from shared.contracts.base import Contract
from shared.contracts.events import Epoch
from shared.contracts.ids import Digest, RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.errors import ZeldaError
from shared.llm.port import RouteUnavailable
from shared.state.scores import ScoreReader
from shared.store import keys
from shared.store.create import create_if_absent, create_or_read
from shared.store.port import NotFound, Store
from shared.telemetry.tracing import fail, span

CANARY_EPOCH: Final = 0  # whose segments are judged again
log = structlog.get_logger(__name__)


class CanarySegment(Contract):
    """One segment of the canary set with each judge's first value."""

    segment: SegmentId
    key: str = Field(max_length=512)
    digest: Digest
    values: dict[str, float]


class CanarySet(Contract):
    """The canary set of a run. `epoch` is the one that its segments belong to."""

    run: RunId
    epoch: Epoch
    segments: list[CanarySegment]


@dataclass(frozen=True, slots=True)
class ScoredInput:
    """A judged clip and its weighted score, kept for the next comparison."""

    judge_input: JudgeInput
    weighted: float


class JudgeMonitor:
    """The canary set and the pair audit, for all runs of this process."""

    def __init__(
        self, store: Store, pool: JudgePool, loader: SegmentLoader, rubric: str, canary_size: int, audit_share: float
    ) -> None:
        self._store, self._pool, self._loader, self._rubric = store, pool, loader, rubric
        self._canary_size, self._audit_share = canary_size, audit_share
        self._scores = ScoreReader(store)
        self._previous: WeakKeyDictionary[EpochLedger, ScoredInput] = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    def on_score_committed(self, judge_input: JudgeInput, scores: SegmentScores, ledger: EpochLedger) -> None:
        """Start the checks that this score triggers: canary set, canaries of the epoch, pair audit."""
        if self._canary_size and scores.epoch > CANARY_EPOCH and not ledger.canaries_started:
            ledger.canaries_started = True
            self._start("check canaries", self._judge_canaries(ledger), ledger)
        if scores.weighted is None:
            return
        before, now = self._previous.get(ledger), ScoredInput(judge_input, scores.weighted)
        if before is not None and audit_draw(scores.segment) < self._audit_share:
            self._start("check pair", self._compare(before, now, ledger), ledger)
        self._previous[ledger] = now

    async def drain(self) -> None:
        """Wait for all running checks."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _canary_set(self, run: RunId) -> CanarySet | None:
        """Read the run's set; the first process that needs it chooses it. None if nothing of CANARY_EPOCH was judged.

        The candidates come from the store, so neither replicas nor restarts matter.
        """
        key = keys.canary_set(run, self._rubric)
        with suppress(NotFound):
            return CanarySet.from_bytes(await self._store.get(key))
        chosen = await self._first_judged(run)
        if not chosen:
            return None
        made = CanarySet(run=run, epoch=CANARY_EPOCH, segments=chosen)
        return CanarySet.from_bytes((await create_or_read(self._store, key, made.to_bytes())).data)

    async def _first_judged(self, run: RunId) -> list[CanarySegment]:
        """The first segments of CANARY_EPOCH, by key, that some judge rated: others have no value to compare with."""
        found: list[CanarySegment] = []
        for entry in await self._store.list(keys.scores_prefix(run, CANARY_EPOCH, self._rubric)):
            if len(found) == self._canary_size:
                break
            score = await self._scores.read(entry.key)
            canary = None if score is None else _canary_of(score.scores)
            if canary is not None:
                found.append(canary)
        return found

    async def _judge_canaries(self, ledger: EpochLedger) -> None:
        """Judge the set again, unless another process claimed this epoch."""
        chosen = await self._canary_set(ledger.run)
        if chosen is None:
            log.info("canary set missing", run=ledger.run, epoch=ledger.epoch)
            return
        claim = keys.canary_claim(ledger.run, ledger.epoch, self._rubric)
        if not await create_if_absent(self._store, claim, b"{}"):
            return
        for canary in chosen.segments:
            loaded = await self._loader.load(ledger.run, canary.segment, canary.key, canary.digest)
            for judge in self._pool.judges:
                await self._judge_canary(judge, loaded, canary, ledger)

    async def _judge_canary(
        self, judge: Judge, loaded: LoadedSegment, canary: CanarySegment, ledger: EpochLedger
    ) -> None:
        first = canary.values.get(str(judge.spec.name))
        if first is None:
            return
        try:
            value = mean_value(await judge.evaluate(loaded.judge_input, ledger.budget, fresh=True))
        except RouteUnavailable as error:  # the other judges and segments proceed
            log.warning("canary skipped", judge=judge.spec.name, segment=canary.segment, error=str(error))
            return
        if value is not None:
            gained = milestones_gained(loaded.manifest)
            row = CanaryRow(judge=judge.spec.name, change=value - first, value=value, gained=gained)
            ledger.record(canary=row)

    async def _compare(self, first: ScoredInput, second: ScoredInput, ledger: EpochLedger) -> None:
        """Ask the judge of `progress` to compare two clips in both orders."""
        judge = judge_of_pairs(self._pool)
        if judge is None:
            return
        forward = await judge.compare(first.judge_input, second.judge_input, ledger.budget)
        backward = await judge.compare(second.judge_input, first.judge_input, ledger.budget)
        if forward and backward:
            ledger.record(pair=PairRow(forward=forward, backward=backward, gap=first.weighted - second.weighted))

    def _start(self, name: str, check: Coroutine[None, None, object], ledger: EpochLedger) -> None:
        ledger.pins += 1  # now, because the task takes its first step later
        task = asyncio.create_task(_log_failure(name, check))
        self._tasks.add(task)
        task.add_done_callback(partial(self._finish, ledger))

    def _finish(self, ledger: EpochLedger, task: asyncio.Task[None]) -> None:
        ledger.pins -= 1
        self._tasks.discard(task)


def _canary_of(scores: SegmentScores) -> CanarySegment | None:
    """The segment with its judges' values; None if all abstained."""
    found = {str(result.judge): mean_value(result) for result in scores.judges}
    values = {name: value for name, value in found.items() if value is not None}
    if not values:
        return None
    return CanarySegment(segment=scores.segment, key=scores.segment_key, digest=scores.segment_digest, values=values)


def judge_of_pairs(pool: JudgePool) -> Judge | None:
    """The judge that compares clips: the first that rates progress."""
    return next((judge for judge in pool.judges if "progress" in judge.spec.dimensions), None)


async def _log_failure(name: str, check: Coroutine[None, None, object]) -> None:
    """Await a check, in a span of its own. A failure is logged, and the report lacks its number."""
    with span(name, SpanKind.INTERNAL, {}) as current:
        try:
            await check
        except ZeldaError as error:
            fail(current, str(error))
            log.warning("check failed", error=str(error))


def audit_draw(segment: str) -> float:
    """Return a number in [0, 1) that depends on the segment alone: every replica audits the same segments."""
    return int.from_bytes(hashlib.sha256(f"audit|{segment}".encode()).digest()[:8], "big") / 2**64
