"""The answers of one judge beside the truth, as arrays; and the baselines that a judge has to beat."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np

from services.rewardmodel.domain.ratings import rating_of
from shared.contracts.base import sha256
from shared.contracts.ids import Digest, EpisodeId, SegmentId
from shared.contracts.scores import SegmentScores, Usage
from shared.llm.budget import add
from shared.store import keys
from studies.judges.answers import Answer
from studies.judges.bank import Bank, BankSegment
from studies.judges.orders import Ints, gained_more, share_ordered
from studies.judges.play import RUN
from studies.stats import Reals

NOISE_SEED: Final = 29
HALVINGS: Final = 30
MAX_FACTS_BYTES: Final = 20_000  # bytes; only the order of lengths counts


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """n judged segments: score and standard error in [0, 1], episode, gain, and gain of the next three (NaN: unknown).

    `answers` are those behind the scores; a baseline has none.
    """

    names: tuple[str, ...]
    score: Reals
    error: Reals
    episode: Ints
    gain: Ints
    following: Reals
    answers: tuple[Answer, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def usage(self) -> Usage:
        """The tokens of all answers."""
        total = Usage()
        for answer in self.answers:
            for result in answer.results:
                total = add(total, result.usage)
        return total

    def only(self, names: set[str]) -> "JudgedSample":
        """Return the part with these segments."""
        kept = np.array([name in names for name in self.names], np.bool_)
        return JudgedSample(
            names=tuple(name for name in self.names if name in names),
            score=self.score[kept],
            error=self.error[kept],
            episode=self.episode[kept],
            gain=self.gain[kept],
            following=self.following[kept],
            answers=tuple(one for one in self.answers if one.segment in names),
        )


def judged_sample(bank: Bank, segments: list[BankSegment], answers: Mapping[str, Answer]) -> JudgedSample:
    """Return the segments that have a score, in the bank's order."""
    rated = [
        (one, answers[one.name]) for one in segments if one.name in answers and answers[one.name].weighted is not None
    ]
    return JudgedSample(
        names=tuple(segment.name for segment, _ in rated),
        score=np.array([answer.weighted for _, answer in rated], np.float64),
        error=np.array([_standard_error(bank, segment, answer) for segment, answer in rated], np.float64),
        episode=np.array([segment.episode for segment, _ in rated], np.int64),
        gain=np.array([segment.gain for segment, _ in rated], np.int64),
        following=np.array([_known(segment.next_gain) for segment, _ in rated], np.float64),
        answers=tuple(answer for _, answer in rated),
    )


def _known(gain: int | None) -> float:
    return np.nan if gain is None else gain


def _standard_error(bank: Bank, segment: BankSegment, answer: Answer) -> float:
    """The standard error of the score, as the reward model derives it from the votes."""
    episode, digest = EpisodeId(f"e{segment.episode}"), Digest(sha256(b""))
    scores = SegmentScores(
        run=RUN,
        epoch=0,
        episode=episode,
        segment=SegmentId(segment.name),
        segment_key=keys.segment(RUN, 0, episode, SegmentId(segment.name)),
        segment_digest=digest,
        rubric=keys.RUBRIC,
        status="judged",
        judges=answer.results,
        weights=answer.weights,
        weighted=answer.weighted,
        created=datetime.now(UTC),
    )
    rating = rating_of(scores, digest)
    assert rating is not None  # it has a weighted score
    return rating.standard_error


def length_only(sample: JudgedSample) -> JudgedSample:
    """Score each segment by the length of the text about it: the more happened, the better."""
    lengths = np.array([answer.facts_bytes for answer in sample.answers], np.float64)
    return replace(sample, score=lengths / MAX_FACTS_BYTES, error=np.zeros(len(sample)), answers=())


def noisy(sample: JudgedSample, deviation: float) -> JudgedSample:
    """Add normal noise of this deviation to the scores."""
    rng = np.random.default_rng(NOISE_SEED)
    return replace(sample, score=sample.score + deviation * rng.standard_normal(len(sample)), answers=())


def noise_for_accuracy(sample: JudgedSample, accuracy: float) -> float:
    """Return the deviation of the noise that lowers the scores' accuracy on pairs to this one."""
    better = gained_more(sample.gain)

    def too_good(deviation: float) -> bool:
        share = share_ordered(noisy(sample, deviation).score, better)
        return share is not None and share > accuracy

    return _smallest(too_good)


def _smallest(too_good: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if too_good(middle) else (low, middle)
    return high


def pairs_accuracy(sample: JudgedSample) -> float | None:
    """Return the share of pairs that differ in gain and are ordered rightly."""
    return share_ordered(sample.score, gained_more(sample.gain))
