"""Decides whether a judge's scores count, by its figures of the epoch before.

A gate that is None is open. A figure that is unknown or comes from too little closes no gate: it says nothing against
a judge.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from shared.contracts.judging.epoch_report import EpochJudging, JudgeFigures, PairFigures

MIN_CANARY: Final = 5  # segments of the canary set: of fewer, a single changed vote is drift
MIN_DECISIONS: Final = 20  # of a few pairs, even an unbiased judge may prefer the first clip each time


@dataclass(frozen=True, slots=True)
class JudgeThresholds:
    """Least alpha (mean over dimensions) and canary accuracy; most drift and position bias, as absolute values."""

    alpha: float | None = None
    drift: float | None = None
    position_bias: float | None = None
    canary_accuracy: float | None = None
    judged: int = 20

    @property
    def open(self) -> bool:
        """Whether no gate is set."""
        limits = (self.alpha, self.drift, self.position_bias, self.canary_accuracy)
        return all(limit is None for limit in limits)


def closed_gates(report: EpochJudging, thresholds: JudgeThresholds, pair_judge: str | None) -> dict[str, list[str]]:
    """Return the judges whose scores must not count, each with the reasons. Only `pair_judge` compares pairs."""
    found = {}
    for name, figures in report.judges.items():
        pairs = report.pairs if name == pair_judge else PairFigures()
        if figures.judged >= thresholds.judged and (reasons := list(_reasons(figures, pairs, thresholds))):
            found[str(name)] = reasons
    return found


def _reasons(figures: JudgeFigures, pairs: PairFigures, limits: JudgeThresholds) -> Iterator[str]:
    alphas = [value for value in figures.alpha.values() if value is not None]
    if limits.alpha is not None and alphas and (mean := sum(alphas) / len(alphas)) < limits.alpha:
        yield f"alpha {mean:.2f} is below {limits.alpha:g}"
    drift = figures.drift if figures.canary >= MIN_CANARY else None
    if limits.drift is not None and drift is not None and abs(drift) > limits.drift:
        yield f"drift {drift:+.3f} is beyond {limits.drift:g}"
    accuracy = figures.canary_accuracy
    if limits.canary_accuracy is not None and accuracy is not None and accuracy < limits.canary_accuracy:
        yield f"canary accuracy {accuracy:.2f} is below {limits.canary_accuracy:g}"
    bias = pairs.bias if pairs.decisions >= MIN_DECISIONS else None
    if limits.position_bias is not None and bias is not None and abs(bias) > limits.position_bias:
        yield f"position bias {bias:+.2f} is beyond {limits.position_bias:g}"
