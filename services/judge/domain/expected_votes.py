"""Reads expected votes from the probabilities of a reply's tokens: one short reply instead of several sampled ones.

A model that says 3 may have almost said 4. The log-probabilities at the place of each number give the whole
distribution over 0 to 5: its mean is the vote, its standard deviation the uncertainty.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt

from services.judge.domain.replies import InvalidReply
from shared.contracts.scores import MAX_VOTE, DimensionScore
from shared.llm.port import TokenOptions

MIN_SHARE = 0.5  # of the probability that must lie on the votes; less, and the model wanted to write something else


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
    if not tokens:
        raise InvalidReply('the server returned no log-probabilities; use "asking: votes"')
    text, starts = "", []
    for token in tokens:
        starts.append(len(text))
        text += token.text
    return {name: _distribution(name, tokens, starts, text) for name in dimensions}


def _distribution(name: str, tokens: Sequence[TokenOptions], starts: Sequence[int], text: str) -> VoteDistribution:
    found = re.search(rf'"{re.escape(name)}"\s*:\s*([0-{MAX_VOTE}])', text)
    if found is None:
        raise InvalidReply(f"no vote for {name} in the tokens of the reply")
    place = found.start(1)
    number = max(index for index, start in enumerate(starts) if start <= place)
    before = text[starts[number] : place]  # a token may hold a space or a colon before the digit
    shares = [0.0] * (MAX_VOTE + 1)
    for option, log_probability in tokens[number].options:
        rest = option.removeprefix(before)
        if option.startswith(before) and re.match(rf"[0-{MAX_VOTE}](?!\d)", rest):
            shares[int(rest[0])] += exp(min(0.0, log_probability))
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
