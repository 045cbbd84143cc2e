"""Agreement statistics: Krippendorff's alpha over votes, Spearman's rank correlation, Cohen's kappa over pairs.

Plain Python: the inputs are small, and the judge's image needs no numerical library.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from math import isclose, sqrt

from shared.contracts.scores import TIE_DIGITS


def krippendorff_alpha(units: Sequence[Sequence[int]]) -> float | None:
    """Return Krippendorff's alpha for ordinal data: 1 is perfect agreement, 0 is chance.

    Each unit holds the votes on one item; units of one vote are ignored. None without a unit of two votes or without
    any variation. Source: Krippendorff, Content Analysis (2004), chapter 11.
    """
    coincidences: dict[tuple[int, int], float] = defaultdict(float)
    for unit in units:
        _add_unit(coincidences, Counter(unit), len(unit))
    totals: dict[int, float] = defaultdict(float)
    for (first, _), weight in coincidences.items():
        totals[first] += weight
    n = sum(totals.values())
    if n == 0:
        return None
    distance = _ordinal_distances(totals)
    observed = sum(weight * distance[pair] for pair, weight in coincidences.items())
    expected = sum(totals[a] * totals[b] * distance[a, b] for a in totals for b in totals) / (n - 1)
    return None if isclose(expected, 0, abs_tol=1e-12) else 1 - observed / expected


def _add_unit(coincidences: dict[tuple[int, int], float], counts: Counter[int], size: int) -> None:
    """Add the ordered pairs of one unit, each weighted by 1 / (size - 1)."""
    if size < 2:
        return
    for a, count_a in counts.items():
        for b, count_b in counts.items():
            pairs = count_a * (count_b - (a == b))
            coincidences[a, b] += pairs / (size - 1)


def _ordinal_distances(totals: dict[int, float]) -> dict[tuple[int, int], float]:
    """Return the squared ordinal distance of each two values: the ratings between them, ends counted half."""
    values = sorted(totals)
    result: dict[tuple[int, int], float] = {}
    for i, low in enumerate(values):
        between = 0.0
        for j in range(i, len(values)):
            between += totals[values[j]]
            gap = between - (totals[low] + totals[values[j]]) / 2
            result[low, values[j]] = result[values[j], low] = gap * gap
    return result


def spearman(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation, mid-ranks for ties; None below three points or for a constant side.

    Values that differ by rounding alone are ties.
    """
    if len(xs) != len(ys):
        raise ValueError(f"{len(xs)} and {len(ys)} values: both sides need the same number")
    if len(xs) < 3:
        return None
    a, b = (ranks([round(value, TIE_DIGITS) for value in side]) for side in (xs, ys))
    mean = (len(xs) + 1) / 2
    cross = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    spread = sqrt(sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b))
    return cross / spread if spread > 0 else None


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 1; equal values share their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    starts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(order)) if values[a] != values[b]), len(order)]
    result = [0.0] * len(values)
    for start, end in pairwise(starts):
        for i in order[start:end]:
            result[i] = (start + 1 + end) / 2
    return result


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Return Cohen's kappa of two lists of labels for the same items; None without items or if chance explains all."""
    n = len(first)
    if n == 0:
        return None
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    counts_a, counts_b = Counter(first), Counter(second)
    chance = sum(counts_a[label] * counts_b[label] for label in counts_a) / (n * n)
    return None if isclose(chance, 1) else (observed - chance) / (1 - chance)
