"""Reads how much better one of two clips is from the probabilities of an answer, and joins the answers of both orders.

Small models prefer a position. A clip that wins only where it is shown first has not won: the label is then a tie.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.judge.domain.reply_tokens import MIN_SHARE, ReplyTokens
from shared.contracts.ids import Digest
from shared.contracts.scores import Usage
from shared.llm.json_reply import InvalidReply
from shared.llm.port import TokenOptions

ANSWER = re.compile(r'"better"\s*:\s*"')  # it ends where the answer begins
EQUAL = "equal"


@dataclass(frozen=True, slots=True)
class PairVote:
    """The probabilities that the clip shown first is better, that both are equal, and that the second is better."""

    first: float
    equal: float
    second: float

    @property
    def preference(self) -> float:
        """The probability that the clip shown first is better; equal clips count half."""
        return self.first + self.equal / 2

    @property
    def choice(self) -> str:
        """The most probable answer: `A` (the first), `B` or `equal`."""
        shares = {"A": self.first, "B": self.second, EQUAL: self.equal}
        return max(shares, key=shares.__getitem__)


@dataclass(frozen=True, slots=True)
class Weighing:
    """The answer to two clips in one order, and its cost. `vote` is None without a valid reply; `reason` then says why.

    `prompt` is the SHA-256 of the request, None if it could not be made; `kept` says that the reply was stored.
    """

    prompt: Digest | None
    vote: PairVote | None
    reason: str
    usage: Usage
    kept: bool = False


def chosen(choice: str) -> PairVote:
    """Return the vote of a judge that answered this without probabilities."""
    return PairVote(float(choice == "A"), float(choice == EQUAL), float(choice == "B"))


def read_pair_vote(tokens: Sequence[TokenOptions]) -> PairVote:
    """Return the probabilities at the place of the answer. Raises InvalidReply."""
    reply = ReplyTokens(tokens)
    found = ANSWER.search(reply.text)
    if found is None or found.end() >= len(reply.text):
        raise InvalidReply("no comparison in the tokens of the reply")
    shares = {"A": 0.0, "B": 0.0, EQUAL: 0.0}
    for rest, probability in reply.continuations(found.end()):
        word = rest.rstrip('"} \n')
        answer = EQUAL if word and EQUAL.startswith(word) else word
        if answer in shares:
            shares[answer] += probability
    total = sum(shares.values())
    if total < MIN_SHARE:
        raise InvalidReply(f"only {total:.0%} of the probability lies on A, B and equal")
    return PairVote(shares["A"] / total, shares[EQUAL] / total, shares["B"] / total)


def soft_label(forward: PairVote, backward: PairVote) -> float:
    """Return the probability that a clip is better: `forward` shows it first, `backward` second.

    It is the mean of both orders, and 0.5 if they disagree.
    """
    shown_first, shown_second = forward.preference, 1 - backward.preference
    if (shown_first - 0.5) * (shown_second - 0.5) < 0:
        return 0.5
    return (shown_first + shown_second) / 2
