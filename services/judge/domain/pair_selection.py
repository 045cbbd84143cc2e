"""Selects the pairs of an epoch that are compared: those about whose order a reward model's members disagree most.

As in Christiano et al. 2017 (arXiv:1706.03741, section 2.2.4) candidates are drawn at random, ten for each wanted pair:
the most disputed pairs of all would be about a few odd segments. The draw is a hash of seed and names, so that the same
epoch gives the same pairs in every process.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

CANDIDATES: Final = 10  # for each wanted pair
MAX_SEGMENTS: Final = 400  # of an epoch; 80,000 possible pairs take a tenth of a second
REPEATS: Final = 4  # pairs of one segment; with more, a few odd segments would get all comparisons


@dataclass(frozen=True, slots=True)
class Opinions:
    """What the members of a reward model think: each segment's score by each member.

    A difference of scores divided by `temperature` gives the log odds that the first segment is better.
    """

    scores: Mapping[str, Sequence[float]]
    temperature: float


@dataclass(frozen=True, slots=True)
class PairCandidate:
    """Two names in order, and how far the members disagree about them; None where no model was asked."""

    first: str
    second: str
    disagreement: float | None = None


def select_pairs(names: Sequence[str], wanted: int, seed: str, opinions: Opinions | None) -> list[PairCandidate]:
    """Select at most `wanted` pairs; without opinions, those that the draw gives. Ordered by name."""
    chosen = sorted(names, key=lambda name: _draw(seed, name))[:MAX_SEGMENTS]
    drawn = sorted(combinations(sorted(chosen), 2), key=lambda pair: _draw(seed, *pair))
    candidates = [PairCandidate(*pair) for pair in drawn]
    if opinions is not None:
        candidates = most_disputed(candidates[: CANDIDATES * wanted], opinions)
    found = list(_spread(candidates, wanted))
    return sorted(found, key=lambda one: (one.first, one.second))


def most_disputed(candidates: Sequence[PairCandidate], opinions: Opinions) -> list[PairCandidate]:
    """The candidates with their disagreement, the largest first; equal ones keep their order."""
    rated = [PairCandidate(one.first, one.second, _disagreement(opinions, one)) for one in candidates]
    return sorted(rated, key=lambda one: -(one.disagreement or 0.0))


def _spread(candidates: Sequence[PairCandidate], wanted: int) -> Iterator[PairCandidate]:
    """The first candidates, each segment in at most REPEATS of them."""
    used: Counter[str] = Counter()
    for one in candidates:
        if wanted and used[one.first] < REPEATS and used[one.second] < REPEATS:
            used.update((one.first, one.second))
            wanted -= 1
            yield one


def _disagreement(opinions: Opinions, pair: PairCandidate) -> float:
    """Standard deviation of the members' probabilities that the first segment is better."""
    first, second = opinions.scores[pair.first], opinions.scores[pair.second]
    odds = [(one - other) / opinions.temperature for one, other in zip(first, second, strict=True)]
    shares = [(1 + math.tanh(one / 2)) / 2 for one in odds]  # the logistic function, for any size of its argument
    mean = sum(shares) / len(shares)
    return math.sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))


def _draw(seed: str, *names: str) -> bytes:
    return hashlib.sha256("|".join((seed, *names)).encode()).digest()
