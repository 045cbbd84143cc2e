"""Reads expected votes from the probabilities of a reply's tokens: one short reply instead of several sampled ones.

A model that says 3 may have almost said 4. The log-probabilities at the place of each number give the whole
distribution over 0 to 5: its mean is the vote, its standard deviation the uncertainty.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from services.judge.domain.reply_tokens import MIN_SHARE, ReplyTokens
from shared.contracts.scores import MAX_VOTE, DimensionScore
from shared.llm.json_reply import InvalidReply
from shared.llm.port import TokenOptions


@dataclass(frozen=True, slots=True)
class VoteDistribution:
    """The probability of each vote from 0 to 5. They sum to 1."""

    shares: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The expected vote."""
        return sum(vote * share for vote, share in enumerate(self.shares))

    @property
    def deviation(self) -> float:
        """Standard deviation of the vote."""
        mean = self.mean
        return sqrt(sum(share * (vote - mean) ** 2 for vote, share in enumerate(self.shares)))

    @property
    def agreement(self) -> float:
        """The probability that three sampled votes are equal: comparable with judges whose votes are sampled."""
        return sum(share**3 for share in self.shares)

    @property
    def most_probable(self) -> int:
        """The vote with the highest probability."""
        return max(range(len(self.shares)), key=self.shares.__getitem__)


def read_distributions(tokens: Sequence[TokenOptions], dimensions: Sequence[str]) -> dict[str, VoteDistribution]:
    """Return the distribution of each dimension's vote in a reply. Raises InvalidReply."""
    reply = ReplyTokens(tokens)
    return {name: _distribution(name, reply) for name in dimensions}


def _distribution(name: str, reply: ReplyTokens) -> VoteDistribution:
    found = re.search(rf'"{re.escape(name)}"\s*:\s*([0-{MAX_VOTE}])', reply.text)
    if found is None:
        raise InvalidReply(f"no vote for {name} in the tokens of the reply")
    shares = [0.0] * (MAX_VOTE + 1)
    for rest, probability in reply.continuations(found.start(1)):
        if re.match(rf"[0-{MAX_VOTE}](?!\d)", rest):
            shares[int(rest[0])] += probability
    total = sum(shares)
    if total < MIN_SHARE:
        raise InvalidReply(f"only {total:.0%} of the probability of {name} lies on votes from 0 to {MAX_VOTE}")
    return VoteDistribution(tuple(share / total for share in shares))


def expected_score(distribution: VoteDistribution, spread_scale: float) -> DimensionScore:
    """Return the score of one dimension: its expected vote mapped to [0, 1], and its scaled uncertainty in votes."""
    return DimensionScore(
        votes=[distribution.most_probable],
        value=min(1.0, max(0.0, distribution.mean / MAX_VOTE)),
        unanimous=distribution.agreement >= 0.5,
        spread=0,
        deviation=distribution.deviation * spread_scale,
    )
