"""Asks judges which of two segments of the bank is better, in both orders, and measures their answers."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from services.judge.domain.pair_votes import PairVote, soft_label
from shared.config.problems import first_problem
from studies.json_lines import append_line, read_lines
from studies.judges.answers import AnswersError
from studies.judges.bank import BankSegment
from studies.judges.calibration import equal_width_calibration_error
from studies.judges.orders import Ints, mean_over_pairs
from studies.judges.table import DIGITS, BenchRow, rounded
from studies.stats import Interval, Reals

PAIR_SEED: Final = 31

Pair = tuple[BankSegment, BankSegment]


class PairAnswer(BaseModel):
    """What a judge said about two segments. Shares are for the clip shown first, for equal, for the second.

    `forward` shows `first` first; None is no valid reply.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    first: str
    second: str
    forward: tuple[float, float, float] | None
    backward: tuple[float, float, float] | None
    seconds: float

    @property
    def label(self) -> float | None:
        """The probability that `first` is better, from both orders; None without both replies."""
        if self.forward is None or self.backward is None:
            return None
        return soft_label(PairVote(*self.forward), PairVote(*self.backward))


class PairAnswers:
    """The file `pairs.jsonl` of a folder of answers, whose AnswersFile states judges and bank."""

    def __init__(self, file: Path, answers: Sequence[PairAnswer]) -> None:
        self.file, self.answers = file, list(answers)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read the file; an absent one is empty. A last line that was cut off is dropped from it.

        Raises AnswersError if it is damaged.
        """
        file = folder / "pairs.jsonl"
        try:
            return cls(file, [PairAnswer.model_validate_json(line) for line in read_lines(file)])
        except ValidationError as error:
            raise AnswersError(f"{file} is damaged: {first_problem(error)}") from error

    def add(self, answer: PairAnswer) -> None:
        """Append an answer."""
        append_line(self.file, answer.model_dump_json())
        self.answers.append(answer)

    def lacks(self, first: BankSegment, second: BankSegment) -> bool:
        """Whether this pair has no answer yet, whichever is named first: an answer holds both orders."""
        return not any({one.first, one.second} == {first.name, second.name} for one in self.answers)


def draw_pairs(segments: Sequence[BankSegment], count: int, *, any_gain: bool = False) -> list[Pair]:
    """Draw pairs that differ in gain; until all segments are drawn, each pair has a new one.

    Fewer pairs are the first of more. With `any_gain`, the truth chooses none of them, as it must for labels of a
    reward model.
    """
    rng = np.random.default_rng(PAIR_SEED)
    found: list[Pair] = []
    seen: set[frozenset[str]] = set()
    possible = sum(any_gain or a.gain != b.gain for place, a in enumerate(segments) for b in segments[:place])
    while len(found) < min(count, possible):
        order = [segments[place] for place in rng.permutation(len(segments))]
        for one, other in _neighbours(order) if any_gain else _different(order):
            pair = frozenset((one.name, other.name))
            if pair not in seen:
                seen.add(pair)
                found.append((one, other))
    return found[:count]


def _neighbours(order: Sequence[BankSegment]) -> list[Pair]:
    return list(zip(order[::2], order[1::2], strict=False))


def _different(order: Sequence[BankSegment]) -> list[Pair]:
    """Pairs that differ in gain: neighbours, then the others among themselves, then those that are left over."""
    pairs = _of_two_gains(_neighbours(order))
    others = sorted(_without(order, pairs), key=lambda segment: segment.gain)
    half = len(others) // 2
    apart = zip(others[:half], others[len(others) - half :], strict=True)  # sorted and half of them apart: seldom equal
    pairs += _shown_in_turns(_of_two_gains(apart))
    surplus = _without(order, pairs)  # all of one gain: they get partners that have a pair already
    gains = {segment.gain for segment in surplus}
    return pairs + _shown_in_turns(zip(surplus, (one for one in order if one.gain not in gains), strict=False))


def _of_two_gains(pairs: Iterable[Pair]) -> list[Pair]:
    return [(one, other) for one, other in pairs if one.gain != other.gain]


def _without(order: Sequence[BankSegment], pairs: Sequence[Pair]) -> list[BankSegment]:
    paired = {segment.name for pair in pairs for segment in pair}
    return [segment for segment in order if segment.name not in paired]


def _shown_in_turns(pairs: Iterable[Pair]) -> list[Pair]:
    """Every second pair with its segments exchanged, so that the first is not always of the smaller gain."""
    return [pair if place % 2 else pair[::-1] for place, pair in enumerate(pairs)]


def pair_row(answers: Sequence[PairAnswer], segments: Sequence[BankSegment]) -> BenchRow:
    """Compute the figures of the answers about pairs of these segments that differ in gain."""
    places = {segment.name: segment for segment in segments}
    answers = [one for one in answers if one.first in places and places[one.first].gain != places[one.second].gain]
    valid = [one for one in answers if one.label is not None]
    first, second = [places[one.first] for one in valid], [places[one.second] for one in valid]
    label = np.array([one.label for one in valid], np.float64)
    truth = np.array([a.gain > b.gain for a, b in zip(first, second, strict=True)], np.bool_)
    right = np.where(label == 0.5, 0.5, (label > 0.5) == truth).astype(np.float64)
    shown_first = np.array([_preferences(one) for one in valid], np.float64).reshape(-1, 2)
    flipped = ((shown_first - 0.5).prod(axis=1) > 0) if valid else np.zeros(0)
    asked = {segment.name for segment in (*first, *second)}
    return BenchRow(
        segments=len(asked),
        episodes=len({segment.episode for segment in (*first, *second)}),
        pairs=len(valid),
        abstained=len(answers) - len(valid),
        pairs_accuracy=_interval(right, np.array([[a.episode, b.episode] for a, b in zip(first, second, strict=True)])),
        flip_rate=_mean(flipped),
        position_preference=_mean(shown_first.ravel() - 0.5),
        ece_raw=rounded(
            equal_width_calibration_error(np.where(truth, label, 1 - label), np.ones(len(valid), np.bool_))
        ),
        seconds_per_segment=rounded(sum(one.seconds for one in valid) / len(asked)) if asked else None,
    )


def _preferences(answer: PairAnswer) -> tuple[float, float]:
    """How probably the clip shown first is better, in each order."""
    assert answer.forward is not None
    assert answer.backward is not None
    return PairVote(*answer.forward).preference, PairVote(*answer.backward).preference


def _mean(values: Reals) -> float | None:
    return rounded(float(values.mean())) if len(values) else None


def _interval(right: Reals, episodes: Ints) -> Interval | None:
    """Mean of `right` (P,), resampling the `episodes` (P, 2) of the pairs; None without a pair."""
    names, number = np.unique(episodes, return_inverse=True)
    first, second = number.reshape(-1, 2).T
    found = mean_over_pairs(right, first, second, len(names))
    return None if found is None else found.rounded(DIGITS)
