"""Decides which finished segments are recorded and judged: stratified, within a budget per epoch.

Pure: no clock, no store, no random state (a draw is a hash of seed and segment id).

Use, one `Sampler` per env runner and epoch:

    sampler = Sampler(Quota.of(config.sampling, steps_to_come, segment_steps, runners), seed=config.seed)
    reason = sampler.decide(Candidate(segment="e0003-r02-v01-0007-s004", level=2, gained=0, novelty=0.7))
    if reason is not None:
        record(..., sampled=reason)          # goes into the manifest as `sampled`

`novelty` is any number that grows with how new the segment was (mean curiosity bonus, new tiles per step);
`disagreement` is the mean standard deviation of the reward model ensemble over the segment. Omit unknown values.
With `milestones` false, milestones influence neither the reserve nor the strata, which then are those of novelty. A
study of judges needs this; otherwise the truth chooses what they see.
"""

import hashlib
from bisect import bisect_left, insort
from collections import Counter, deque
from dataclasses import dataclass, field
from math import frexp
from typing import Literal, Self

from shared.contracts.run import SamplingConfig

Reason = Literal["share", "milestone", "novelty", "disagreement"]

MILESTONE_RESERVE = 0.25  # part of the budget reserved for milestones; if too small, a late breakthrough goes unjudged
RANKED_PART = 1 / 3  # of the paced rate, for novelty and disagreement each; if too large, ordinary play goes unseen
WINDOW = 256  # values kept for a quantile; if too small, one outlier moves the threshold
NOTHING_NEW = -2_000  # the stratum below any power of two
WARM_UP = 16  # values needed before a quantile is meaningful


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finished segment before the decision. `level` and `gained` count milestones at its start and within it."""

    segment: str
    level: int
    gained: int
    novelty: float | None = None
    disagreement: float | None = None


@dataclass(frozen=True, slots=True)
class Quota:
    """One runner's part of an epoch: at most `budget` of about `expected` segments; `share` bounds ordinary ones."""

    share: float
    milestones: bool
    budget: int
    expected: int

    @classmethod
    def of(
        cls,
        config: SamplingConfig,
        steps_to_come: int,
        segment_steps: int,
        runners: int,
        recorded: int = 0,
        runner: int = 1,
    ) -> Self:
        """Divide the rest of the epoch's budget evenly over `runners` env runners; the first ones get the remainder.

        `recorded` segments of the epoch exist already; `steps_to_come` are the steps still to make. The result is the
        quota of env runner `runner`, counted from 1.
        """
        runners, left = max(1, runners), max(0, config.budget - recorded)
        return cls(
            share=config.share,
            milestones=config.milestones,
            budget=left // runners + (runner <= left % runners),
            expected=max(1, steps_to_come // segment_steps // runners),
        )


class RecentRanks:
    """Ranks a value among the most recent ones: the share of them that is below it."""

    def __init__(self, size: int = WINDOW) -> None:
        self._recent: deque[float] = deque(maxlen=size)
        self._sorted: list[float] = []

    def rank(self, value: float) -> float | None:
        """The share of recent values below `value`, or None while there are too few; then add it."""
        share = bisect_left(self._sorted, value) / len(self._sorted) if len(self._sorted) >= WARM_UP else None
        if len(self._recent) == self._recent.maxlen:
            del self._sorted[bisect_left(self._sorted, self._recent[0])]
        self._recent.append(value)
        insort(self._sorted, value)
        return share


@dataclass
class Sampler:
    """Decides segment by segment. Counts the segments seen and taken, in total and by stratum."""

    quota: Quota
    seed: int
    seen: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    _strata_seen: Counter[int] = field(default_factory=Counter)
    _novelty: RecentRanks = field(default_factory=RecentRanks)
    _disagreement: RecentRanks = field(default_factory=RecentRanks)

    def decide(self, candidate: Candidate) -> Reason | None:
        """The reason to record this segment, or None."""
        rate = self.rate()
        self.seen += 1
        self._strata_seen[self._stratum(candidate)] += 1
        reason = self._reason(candidate, rate)
        if reason is not None:
            self.taken[reason] += 1
        return reason

    def rate(self) -> float:
        """Share of the coming ordinary segments to take, such that the budget lasts until the epoch's end."""
        left = self.quota.budget - self.taken.total()
        reserve = 0.0
        if self.quota.milestones and self.quota.budget < self.quota.expected:
            reserve = max(0.0, self.quota.budget * MILESTONE_RESERVE - self.taken["milestone"])
            reserve *= max(0.0, 1 - self.seen / self.quota.expected)  # an unused reserve is released over the epoch
        to_come = max(1, self.quota.expected - self.seen)
        return max(0.0, min(self.quota.share, (left - reserve) / to_come))

    def _reason(self, candidate: Candidate, rate: float) -> Reason | None:
        novelty = self._place(self._novelty, candidate.novelty)
        disagreement = self._place(self._disagreement, candidate.disagreement)
        if self.taken.total() >= self.quota.budget:
            return None
        if self.quota.milestones and candidate.gained > 0:
            return "milestone"
        if rate <= 0:  # otherwise the largest value so far, whose rank is 1, would always be taken
            return None
        if disagreement is not None and disagreement >= 1 - rate * RANKED_PART:
            return "disagreement"
        if novelty is not None and novelty >= 1 - rate * RANKED_PART:
            return "novelty"
        ranked = (novelty is not None) + (disagreement is not None)
        chance = self._uniform(candidate, rate, ranked)
        return "share" if chance >= 1 or self._draw(candidate) < chance else None

    def _uniform(self, candidate: Candidate, rate: float, ranked: int) -> float:
        """Probability of an ordinary segment: higher in rare strata, lower in common ones."""
        even = self.seen / len(self._strata_seen)
        weight = even / self._strata_seen[self._stratum(candidate)]
        plain = rate if rate >= 1 else rate * (1 - ranked * RANKED_PART)
        return min(self.quota.share, plain * weight) if plain < 1 else 1.0

    def _stratum(self, candidate: Candidate) -> int:
        """The milestone level, or without milestones the novelty by powers of two; `NOTHING_NEW` for none."""
        if self.quota.milestones:
            return candidate.level
        return frexp(candidate.novelty)[1] if candidate.novelty and candidate.novelty > 0 else NOTHING_NEW

    def _draw(self, candidate: Candidate) -> float:
        """A number in [0, 1) from seed and segment alone, so that repeated play draws the same."""
        digest = hashlib.sha256(f"{self.seed}|{candidate.segment}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64

    @staticmethod
    def _place(ranking: RecentRanks, value: float | None) -> float | None:
        return None if value is None else ranking.rank(value)
