"""Judging the judges while they work: the canary set, judged again each epoch, and pairs compared in both orders.

Runs beside the real work, after the score is committed; a failure here costs a number in the report, never a score.
"""

import asyncio
import hashlib
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import structlog
from pydantic import Field

from services.judge.books import Book
from services.judge.briefing import Clip
from services.judge.clips import Clips
from services.judge.domain.rows import CanaryRow, PairRow, value_of
from services.judge.domain.timeline import TooLong
from services.judge.juror import Juror
from services.judge.panel import Panel
from services.judge.ports import RouteUnavailable
from shared.contracts.base import Contract
from shared.contracts.events import Epoch
from shared.contracts.ids import Digest, RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.errors import ZeldaError
from shared.store import keys
from shared.store.port import AlreadyExists, NotFound, Store

log = structlog.get_logger(__name__)


class Canary(Contract):
    """One segment of the canary set, and what each judge said the first time."""

    segment: SegmentId
    key: str = Field(max_length=512)
    digest: Digest
    values: dict[str, float]


class CanarySet(Contract):
    """The canary set of a run. `epoch` is the one whose segments it holds."""

    run: RunId
    epoch: Epoch
    segments: list[Canary]


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged clip and its weighted score, kept for the next comparison."""

    clip: Clip
    weighted: float


class Checks:
    """The canary set and the audit of pairs, for all runs of this process."""

    def __init__(self, store: Store, panel: Panel, clips: Clips, rubric: str, size: int, audit_share: float) -> None:
        self._store, self._panel, self._clips, self._rubric = store, panel, clips, rubric
        self._size, self._audit_share = size, audit_share
        self._gathered: dict[RunId, list[Canary]] = {}
        self._last: WeakKeyDictionary[Book, Judged] = WeakKeyDictionary()  # of each epoch, while its book is open
        self._tasks: set[asyncio.Task[None]] = set()

    def judged(self, clip: Clip, scores: SegmentScores, book: Book) -> None:
        """A segment was judged: perhaps it joins the canary set, is compared, or its epoch's canaries are due."""
        if self._size and not book.canary_asked:
            if scores.epoch == 0:
                self._gather(scores, book)
            else:
                book.canary_asked = True
                self._start(self._canaries(book), book)
        if scores.weighted is None:
            return
        before, now = self._last.get(book), Judged(clip, scores.weighted)
        if before is not None and draw(scores.segment) < self._audit_share:
            self._start(self._compare(before, now, book), book)
        self._last[book] = now

    async def drain(self) -> None:
        """Wait for what runs."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _gather(self, scores: SegmentScores, book: Book) -> None:
        """Collect the first judged segments of epoch 0; when there are enough, they are the set."""
        found = {str(result.judge): value_of(result) for result in scores.judges}
        values = {name: value for name, value in found.items() if value is not None}
        if not values:
            return  # all abstained: later votes would have nothing to be compared with
        canary = Canary(segment=scores.segment, key=scores.segment_key, digest=scores.segment_digest, values=values)
        gathered = self._gathered.setdefault(book.run, [])
        gathered.append(canary)
        if len(gathered) == self._size:
            book.canary_asked = True
            chosen = CanarySet(run=book.run, epoch=book.epoch, segments=self._gathered.pop(book.run))
            self._start(self._create(keys.canary_set(book.run, self._rubric), chosen.to_bytes()), book)

    async def _canaries(self, book: Book) -> None:
        """Judge the set again, if no other process does it for this epoch."""
        try:
            raw = await self._store.get(keys.canary_set(book.run, self._rubric))
        except NotFound:
            log.info("no canary set", run=book.run, epoch=book.epoch)
            return
        if not await self._create(keys.canary_claim(book.run, book.epoch, self._rubric), b"{}"):
            return
        for canary in CanarySet.from_bytes(raw).segments:
            loaded = await self._clips.load(book.run, canary.segment, canary.key, canary.digest)
            for juror in self._panel.jurors:
                await self._again(juror, loaded.clip, canary, book)

    async def _again(self, juror: Juror, clip: Clip, canary: Canary, book: Book) -> None:
        first = canary.values.get(str(juror.spec.name))
        if first is None:
            return
        try:
            value = value_of(await juror.judge(clip, book.ledger, fresh=True))
        except RouteUnavailable as error:  # the other judges and segments have their numbers
            log.warning("canary not judged", judge=juror.spec.name, segment=canary.segment, error=str(error))
            return
        if value is not None:
            book.note(canary=CanaryRow(judge=juror.spec.name, change=value - first))

    async def _compare(self, first: Judged, second: Judged, book: Book) -> None:
        """Ask the judge of progress about two clips, in both orders."""
        juror = next((juror for juror in self._panel.jurors if "progress" in juror.spec.dimensions), None)
        if juror is None:
            return
        forward = await juror.compare(first.clip, second.clip, book.ledger)
        backward = await juror.compare(second.clip, first.clip, book.ledger)
        if forward and backward:
            book.note(pair=PairRow(forward=forward, backward=backward, gap=first.weighted - second.weighted))

    async def _create(self, key: str, raw: bytes) -> bool:
        """Create the object; False if somebody else did."""
        try:
            await self._store.create(key, raw)
        except AlreadyExists:
            return False
        return True

    def _start(self, work: Coroutine[None, None, object], book: Book) -> None:
        book.holders += 1  # from now on, not from the task's first step on
        task = asyncio.create_task(_reported(work))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, book))

    def _ended(self, book: Book, task: asyncio.Task[None]) -> None:
        book.holders -= 1
        self._tasks.discard(task)


async def _reported(work: Coroutine[None, None, object]) -> None:
    """A check that cannot be made leaves its number out of the report; the log says why."""
    try:
        await work
    except (ZeldaError, TooLong) as error:
        log.warning("check not made", error=str(error))


def draw(segment: str) -> float:
    """A number in [0, 1) that depends on the segment alone: every replica audits the same ones."""
    return int.from_bytes(hashlib.sha256(f"audit|{segment}".encode()).digest()[:8], "big") / 2**64
