"""The figures of one judge on one half of the bank: a row of the results file and of the table."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from services.judge.domain.agreement import krippendorff_alpha, spearman
from studies.judges.calibration import SpreadCalibration, equal_width_calibration_error
from studies.judges.orders import (
    concordance,
    concordance_over,
    flips,
    gained_any,
    gained_more,
    gained_several,
    led_to_more,
)
from studies.judges.sample import JudgedSample
from studies.stats import Estimate, Interval

DIGITS: Final = 4


class BenchRow(BaseModel):
    """The figures of one judge. An interval is value, lower and upper bound (95 %); None is not measured.

    `pairs_accuracy` counts pairs that differ in gain, `next_accuracy` pairs of equal gain that differ in the next three
    segments, `auc` is for having gained anything, `count_accuracy` for having gained several milestones instead of one.
    `over_length` is how much larger `pairs_accuracy` and `auc` are than those of the length of the text, on the same
    pairs. `flip_rate` is the share of pairs ordered oppositely when the judge is asked again with the lines of the
    totals in another order, `retest` the rank correlation of both scores. `ece` is the calibration error of the
    probability that the reward model would learn from, after `calibration` was fitted on the other half; `ece_raw` is
    the error before. A judge that compared `pairs` in both orders flips where the winner changes with the order, and
    `position_preference` is its mean probability for the clip shown first, minus one half.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    segments: int
    episodes: int
    abstained: int = 0
    pairs: int | None = None
    pairs_accuracy: Interval | None = None
    next_accuracy: Interval | None = None
    auc: Interval | None = None
    count_accuracy: Interval | None = None
    over_length: dict[Literal["pairs_accuracy", "auc"], Interval] | None = None
    alpha: float | None = None
    flip_rate: float | None = None
    position_preference: float | None = None
    retest: float | None = None
    ece: float | None = None
    ece_raw: float | None = None
    calibration: dict[str, float] | None = None
    seconds_per_segment: float | None = None
    tokens_per_1000: dict[str, int] | None = None
    ablations: dict[str, Interval] = {}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a row is made of. `again` are scores of some of the segments that were asked a second time.

    `ablations` are samples of other variants, measured on the segments that they have. `length` scores by the length of
    the text.
    """

    sample: JudgedSample
    abstained: int = 0
    again: JudgedSample | None = None
    ablations: dict[str, JudgedSample] | None = None
    length: JudgedSample | None = None
    calibration: SpreadCalibration | None = None


def row_of(evidence: Evidence) -> BenchRow:
    """Compute the figures."""
    sample, calibration = evidence.sample, evidence.calibration
    better = gained_more(sample.gain)
    raw = equal_width_calibration_error(SpreadCalibration().probability(sample.score, sample.error), better)
    flip, retest = _asked_again(sample, evidence.again)
    ece = None
    if calibration is not None:
        ece = equal_width_calibration_error(calibration.probability(sample.score, sample.error), better)
    return BenchRow(
        segments=len(sample),
        episodes=len(np.unique(sample.episode)),
        abstained=evidence.abstained,
        pairs_accuracy=_interval(concordance(sample.score, better, sample.episode)),
        next_accuracy=_interval(concordance(sample.score, led_to_more(sample.gain, sample.following), sample.episode)),
        auc=_interval(concordance(sample.score, gained_any(sample.gain), sample.episode)),
        count_accuracy=_interval(concordance(sample.score, gained_several(sample.gain), sample.episode)),
        over_length=None if evidence.length is None else _over_length(sample, evidence.length),
        alpha=rounded(_alpha(sample)),
        flip_rate=rounded(flip),
        retest=rounded(retest),
        ece=rounded(ece),
        ece_raw=rounded(raw),
        calibration=None if calibration is None else _parameters(calibration),
        seconds_per_segment=_seconds(sample),
        tokens_per_1000=_tokens(sample),
        ablations=_ablations(sample, evidence.ablations or {}),
    )


def _over_length(sample: JudgedSample, length: JudgedSample) -> dict[Literal["pairs_accuracy", "auc"], Interval] | None:
    """The advantage over the length of the text, on the segments that both scored; None without a pair."""
    one = sample.only(set(length.names))
    other = length.only(set(one.names))
    pairs = concordance_over(one.score, other.score, gained_more(one.gain), one.episode)
    auc = concordance_over(one.score, other.score, gained_any(one.gain), one.episode)
    if pairs is None or auc is None:
        return None
    return {"pairs_accuracy": pairs.rounded(DIGITS), "auc": auc.rounded(DIGITS)}


def _interval(estimate: Estimate | None) -> Interval | None:
    return None if estimate is None else estimate.rounded(DIGITS)


def rounded(value: float | None) -> float | None:
    """Return the value with as many digits as the file keeps."""
    return None if value is None else round(value, DIGITS)


def _parameters(calibration: SpreadCalibration) -> dict[str, float]:
    return {"scale": round(calibration.scale, DIGITS), "floor": round(calibration.floor, DIGITS)}


def _alpha(sample: JudgedSample) -> float | None:
    """Mean of Krippendorff's alpha over judges and dimensions; None without two votes on a segment."""
    units: dict[tuple[str, str], list[Sequence[int]]] = defaultdict(list)
    for answer in sample.answers:
        for result in answer.results:
            for name, score in result.dimensions.items():
                units[str(result.judge), name].append(score.votes)
    found = [alpha for votes in units.values() if (alpha := krippendorff_alpha(votes)) is not None]
    return sum(found) / len(found) if found else None


def _asked_again(sample: JudgedSample, again: JudgedSample | None) -> tuple[float | None, float | None]:
    if again is None or not len(again):
        return None, None
    first = sample.only(set(again.names))
    second = again.only(set(first.names))
    better = gained_more(first.gain)
    return flips(first.score, second.score, better), spearman(first.score.tolist(), second.score.tolist())


def _seconds(sample: JudgedSample) -> float | None:
    seconds = [answer.seconds for answer in sample.answers]
    return rounded(float(np.mean(seconds))) if seconds else None


def _tokens(sample: JudgedSample) -> dict[str, int] | None:
    usage, count = sample.usage, len(sample.answers)
    if not count or not usage.prompt_tokens:
        return None
    spent = {"prompt": usage.prompt_tokens, "cached": usage.cached_tokens, "output": usage.output_tokens}
    return {name: round(1_000 * tokens / count) for name, tokens in spent.items()}


def _ablations(sample: JudgedSample, variants: dict[str, JudgedSample]) -> dict[str, Interval]:
    """Accuracy on pairs in each variant; `plain:V` is that of the same segments as they are."""
    found: dict[str, Interval] = {}
    for name, changed in variants.items():
        same = sample.only(set(changed.names))
        for title, one in ((name, changed), (f"plain of {name}", same)):
            interval = _interval(concordance(one.score, gained_more(one.gain), one.episode))
            if interval is not None:
                found[title] = interval
    return found
