"""Compares two judges or two rubric versions on the same segments of a run: agreement, correlation, cost.

A side is named `RUBRIC` (its weighted score) or `RUBRIC/JUDGE` (that judge alone), e.g. `default/state`.
"""

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from typing import NoReturn, Self, TypeVar

import structlog

from services.judge.domain.agreement import cohen_kappa, spearman
from services.judge.domain.ledger_rows import LedgerPart, SegmentRow, segment_row
from services.judge.domain.report import build_report
from shared.contracts.archive import read_manifest
from shared.contracts.ids import RunId
from shared.contracts.judging.epoch_report import Correlation
from shared.contracts.scores import TIE_DIGITS, SegmentScores, Usage
from shared.contracts.segment import SegmentManifest
from shared.errors import Permanent
from shared.llm.budget import add
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import Store

MAX_PAIRS = 20_000  # pairs of segments for kappa; more change it by less than 0.01
CONCURRENT_READS = 16

_SCORE = re.compile(r"epoch_(0|[1-9][0-9]{0,8})/([^/]+)/[^/]+\.json")  # after the prefix of a run's scores
T = TypeVar("T")
log = structlog.get_logger(__name__)
Point = tuple[float, float, int]


@dataclass(frozen=True, slots=True)
class ScoreSource:
    """The scores of one side: a rubric version, and one of its judges or all."""

    rubric: str
    judge: str | None

    @classmethod
    def of(cls, name: str) -> Self:
        """Parse `RUBRIC` or `RUBRIC/JUDGE`."""
        rubric, _, judge = name.partition("/")
        return cls(rubric, judge or None)

    def __str__(self) -> str:
        return self.rubric if self.judge is None else f"{self.rubric}/{self.judge}"

    def value(self, row: SegmentRow) -> float | None:
        """Return the side's value for one segment; None if it abstained."""
        if self.judge is None:
            return row.weighted
        return next((judge.value for judge in row.judges if judge.judge == self.judge), None)


@dataclass(frozen=True, slots=True)
class SideSummary:
    """Figures of one side."""

    judged: int
    votes_per_segment: float | None
    unanimous: float | None
    correlation: Correlation
    usage: Usage


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides. `points` are (value of A, value of B, milestones gained) of the segments that both judged."""

    sides: tuple[str, str]
    summaries: tuple[SideSummary, SideSummary]
    points: list[Point]
    rank_correlation: float | None
    kappa: float | None
    mean_difference: float | None


class MissingScores(LookupError):
    """A side of a comparison has no scores, or no recordings. The message says what there is."""


async def compare(store: Store, run: RunId, epoch: int | None, names: Sequence[str]) -> Comparison:
    """Read scores and manifests and compare the sides. Raises MissingScores."""
    first, second = (ScoreSource.of(name) for name in names)
    known = await _score_keys(store, run, epoch)
    for rubric in (first.rubric, second.rubric):
        _require_scores(known, run, epoch, rubric)
    read = {rubric: await _scores(store, known[rubric]) for rubric in {first.rubric, second.rubric}}
    # A dead segment rarely has a readable manifest.
    alive = {rubric: [scores for scores in found if scores.status != "dead"] for rubric, found in read.items()}
    keys_of = {str(scores.segment): scores.segment_key for found in alive.values() for scores in found}
    manifests = await _manifests(store, keys_of)
    rows = {
        rubric: [segment_row(scores, manifest) for scores in found if (manifest := manifests[str(scores.segment)])]
        for rubric, found in alive.items()
    }
    for rubric, found in alive.items():
        if found and not rows[rubric]:
            await _refuse_without_recordings(store, run, epoch, rubric)
    summaries = tuple(_summary(run, side, rows[side.rubric], read[side.rubric]) for side in (first, second))
    values = [{row.segment: row for row in rows[side.rubric]} for side in (first, second)]
    points = []
    for segment in sorted(values[0].keys() & values[1].keys()):
        a, b = first.value(values[0][segment]), second.value(values[1][segment])
        if a is not None and b is not None:
            points.append((a, b, values[0][segment].gained))
    return Comparison(
        sides=(str(first), str(second)),
        summaries=(summaries[0], summaries[1]),
        points=points,
        rank_correlation=spearman([a for a, _, _ in points], [b for _, b, _ in points]),
        kappa=_kappa(points),
        mean_difference=sum(b - a for a, b, _ in points) / len(points) if points else None,
    )


def _summary(run: RunId, side: ScoreSource, rows: Sequence[SegmentRow], scores: Sequence[SegmentScores]) -> SideSummary:
    usage: dict[str, Usage] = {}
    for one in scores:
        for result in one.judges:
            usage[str(result.judge)] = add(usage.get(str(result.judge), Usage()), result.usage)
    part = LedgerPart(replica="compare", rows=list(rows), usage=usage)
    merged = build_report(run, 0, side.rubric, [part], datetime.now(UTC))
    if side.judge is None:
        judged = sum(row.weighted is not None for row in rows)
        votes = merged.votes / judged if judged else None
        return SideSummary(judged, votes, merged.agreement, merged.correlation, merged.usage)
    judge = next((figures for name, figures in merged.judges.items() if name == side.judge), None)
    if judge is None:
        raise MissingScores(
            f"no judge {side.judge!r} in rubric {side.rubric!r}; its judges: {', '.join(merged.judges)}"
        )
    return SideSummary(judge.judged, judge.votes_per_segment, judge.unanimous, judge.correlation, judge.usage)


def _kappa(points: Sequence[Point]) -> float | None:
    """Return Cohen's kappa of how both sides order each pair of segments."""
    pairs = _pairs(points)
    return cohen_kappa([_order(x[0], y[0]) for x, y in pairs], [_order(x[1], y[1]) for x, y in pairs])


def _pairs(points: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Return all pairs of points, or a reproducible sample of MAX_PAIRS pairs."""
    if len(points) * (len(points) - 1) // 2 <= MAX_PAIRS:
        return list(combinations(points, 2))
    rng = random.Random(0)  # noqa: S311  # a sample, not a secret
    chosen = [rng.sample(range(len(points)), 2) for _ in range(MAX_PAIRS)]
    return [(points[first], points[second]) for first, second in chosen]


def _order(x: float, y: float) -> str:
    """Which of two values is greater; values that differ by rounding alone are equal."""
    x, y = round(x, TIE_DIGITS), round(y, TIE_DIGITS)
    return "equal" if x == y else "first" if x > y else "second"


def _require_scores(known: Collection[str], run: RunId, epoch: int | None, rubric: str) -> None:
    """Raise MissingScores unless the rubric version is one of the `known` ones."""
    if rubric not in known:
        where = "" if epoch is None else f" in epoch {epoch}"
        others = ", ".join(sorted(known)) or "none: judge it with `zelda judge segments`"
        raise MissingScores(f"run {run} has no scores under rubric {rubric!r}{where}; its rubrics{where}: {others}")


async def _scores(store: Store, names: Sequence[str]) -> list[SegmentScores]:
    """Return the readable scores of these keys."""
    return [scores for scores in await _read(store, names, SegmentScores.from_bytes) if scores is not None]


async def rubrics(store: Store, run: RunId) -> list[str]:
    """The rubric versions under which any segment of a run has a score."""
    return sorted(await _score_keys(store, run, None))


async def _score_keys(store: Store, run: RunId, epoch: int | None) -> dict[str, list[str]]:
    """Rubric version -> keys of its scores, in order of epochs. Recordings may expire before them."""
    prefix = keys.all_scores_prefix(run)
    places = [_SCORE.fullmatch(entry.key.removeprefix(prefix)) for entry in await store.list(prefix)]
    found: dict[str, list[str]] = defaultdict(list)
    for number, rubric, place in sorted((int(one[1]), one[2], one[0]) for one in places if one is not None):
        if epoch in (None, number):
            found[rubric].append(prefix + place)
    return found


async def _refuse_without_recordings(store: Store, run: RunId, epoch: int | None, rubric: str) -> NoReturn:
    """Raise MissingScores: the rubric version has scores, but no readable recording belongs to them."""
    expired = not await list_segments(store, run, epoch)
    why = "their recordings have expired" if expired else "none of their recordings is readable (the log says why)"
    raise MissingScores(
        f"run {run} has scores under rubric {rubric!r}, but {why}: a comparison reads the milestones from them"
    )


async def _manifests(store: Store, keys_of: Mapping[str, str]) -> dict[str, SegmentManifest | None]:
    return dict(zip(keys_of, await _read(store, list(keys_of.values()), read_manifest), strict=True))


async def _read(store: Store, names: Sequence[str], parse: Callable[[bytes], T]) -> list[T | None]:
    """Read and parse objects, a few at a time; None for an unreadable one.

    Objects are dropped after parsing: archives would fill the memory.
    """
    slots = asyncio.Semaphore(CONCURRENT_READS)

    async def one(name: str) -> T | None:
        async with slots:
            try:
                return parse(await store.get(name))
            except Permanent as error:  # damaged, or expired after it was judged
                log.error("object skipped in comparison", key=name, error=str(error))
                return None

    return await asyncio.gather(*(one(name) for name in names))
