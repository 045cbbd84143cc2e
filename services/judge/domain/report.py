"""Builds the report of one epoch: votes, agreement, drift, position bias, correlation with true progress, cost.

Pure: the ledger parts of all judge processes in, one document out. A value that cannot be computed is None.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from services.judge.domain.agreement import cohen_kappa, krippendorff_alpha, spearman
from services.judge.domain.ledger_rows import CanaryRow, LedgerPart, PairRow, SegmentRow
from shared.contracts.ids import RunId
from shared.contracts.judging.epoch_report import Correlation, EpochJudging, JudgeFigures, PairFigures
from shared.contracts.scores import TIE_DIGITS, Usage
from shared.llm.budget import add

MIN_CANARY_PAIRS = 5  # pairs of the canary set that differ in gain; fewer say nothing about a judge
NEXT_SEGMENTS = 3  # segments after a segment whose gain counts as "next"; more, and chance dominates


def build_report(run: RunId, epoch: int, rubric: str, parts: Sequence[LedgerPart], created: datetime) -> EpochJudging:
    """Merge the parts. A segment recorded twice (after a crash) counts once."""
    rows = list({row.segment: row for part in parts for row in part.rows}.values())
    usage: dict[str, Usage] = {}
    for part in parts:
        for name, spent in part.usage.items():
            usage[name] = add(usage.get(name, Usage()), spent)
    canary = [row for part in parts for row in part.canary]
    names = sorted({str(judge.judge) for row in rows for judge in row.judges} | set(usage))
    judges = {name: _judge(name, rows, canary, usage.get(name, Usage())) for name in names}
    total = Usage()
    for spent in usage.values():
        total = add(total, spent)
    return EpochJudging(
        run=run,
        epoch=epoch,
        rubric=rubric,
        segments=dict(Counter(row.status for row in rows)),
        votes=sum(judge.votes for judge in judges.values()),
        agreement=_unanimous(row for row in rows),
        correlation=_correlation(rows, {row.segment: row.weighted for row in rows}),
        judges=judges,
        pairs=_pairs([pair for part in parts for pair in part.pairs]),
        usage=total,
        budget_exhausted=any(part.exhausted for part in parts),
        created=created,
    )


def _judge(name: str, rows: Sequence[SegmentRow], canary: Sequence[CanaryRow], usage: Usage) -> JudgeFigures:
    own = [(row, judge) for row in rows for judge in row.judges if judge.judge == name]
    judged = [judge for _, judge in own if judge.value is not None]
    votes = [max(map(len, judge.votes.values())) for judge in judged]
    own_canary = [row for row in canary if row.judge == name]
    changes = [row.change for row in own_canary]
    dimensions = sorted({dimension for judge in judged for dimension in judge.votes})
    return JudgeFigures(
        judged=len(judged),
        abstained=len(own) - len(judged),
        votes=sum(votes),
        votes_per_segment=_mean(votes),
        unanimous=_unanimous((row for row, _ in own), name),
        alpha={
            dim: krippendorff_alpha([judge.votes[dim] for judge in judged if dim in judge.votes]) for dim in dimensions
        },
        correlation=_correlation(rows, {row.segment: judge.value for row, judge in own}),
        drift=_mean(changes),
        drift_absolute=_mean([abs(change) for change in changes]),
        canary=len(changes),
        canary_accuracy=_canary_accuracy(own_canary),
        usage=usage,
    )


def _canary_accuracy(rows: Sequence[CanaryRow]) -> float | None:
    """Share of the pairs of canary segments that differ in gain and are ordered rightly; equal values count half."""
    judged = [(row.value, row.gained) for row in rows if row.value is not None and row.gained is not None]
    known = [(round(value, TIE_DIGITS), gained) for value, gained in judged]
    right = [
        0.5 if value == other else float((value > other) == (gained > others))
        for place, (value, gained) in enumerate(known)
        for other, others in known[:place]
        if gained != others
    ]
    return _mean(right) if len(right) >= MIN_CANARY_PAIRS else None


def _unanimous(rows: Iterable[SegmentRow], judge: str | None = None) -> float | None:
    """Return the share of judged dimensions with unanimous votes, of one judge or of all."""
    chosen = [item for row in rows for item in row.judges if judge is None or item.judge == judge]
    dimensions = sum(len(item.votes) for item in chosen)
    return sum(item.unanimous for item in chosen) / dimensions if dimensions else None


def _correlation(rows: Sequence[SegmentRow], values: Mapping[str, float | None]) -> Correlation:
    ahead = _gained_next(rows)
    now: list[tuple[float, float]] = []
    later: list[tuple[float, float]] = []
    for row in rows:
        value = values.get(row.segment)
        if value is None:
            continue
        now.append((value, row.gained))
        if row.segment in ahead:
            later.append((value, ahead[row.segment]))
    return Correlation(segment=_spearman(now), next=_spearman(later))


def _gained_next(rows: Sequence[SegmentRow]) -> dict[str, int]:
    """Return the milestones gained in the next segments of the same episode, for segments that have any."""
    gained = {(row.episode, row.index): row.gained for row in rows}
    result = {}
    for row in rows:
        following = [gained.get((row.episode, row.index + step)) for step in range(1, NEXT_SEGMENTS + 1)]
        known = [gain for gain in following if gain is not None]
        if known:
            result[str(row.segment)] = sum(known)
    return result


def _spearman(points: Sequence[tuple[float, float]]) -> float | None:
    rank = spearman([x for x, _ in points], [y for _, y in points])
    return None if rank is None else max(-1.0, min(1.0, rank))


def _pairs(pairs: Sequence[PairRow]) -> PairFigures:
    swapped = {"A": "B", "B": "A", "equal": "equal"}
    decisions = [decision for pair in pairs for decision in (pair.forward, pair.backward) if decision != "equal"]
    same = [pair for pair in pairs if swapped[pair.backward] == pair.forward]
    gaps = [round(pair.gap, TIE_DIGITS) for pair in same]
    by_votes = ["equal" if gap == 0 else "A" if gap > 0 else "B" for gap in gaps]
    return PairFigures(
        compared=len(pairs),
        consistent=len(same) / len(pairs) if pairs else None,
        decisions=len(decisions),
        bias=decisions.count("A") / len(decisions) - 0.5 if decisions else None,
        kappa_with_votes=cohen_kappa([pair.forward for pair in same], by_votes),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
