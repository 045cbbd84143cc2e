"""Decides whether a judge's scores count, by its figures of the epoch before.

A gate that is None is open. A figure that is unknown closes no gate: too few segments say nothing against a judge.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from shared.contracts.judging.epoch_report import EpochJudging, JudgeFigures, PairFigures


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
    if limits.drift is not None and figures.drift is not None and abs(figures.drift) > limits.drift:
        yield f"drift {figures.drift:+.3f} is beyond {limits.drift:g}"
    accuracy = figures.canary_accuracy
    if limits.canary_accuracy is not None and accuracy is not None and accuracy < limits.canary_accuracy:
        yield f"canary accuracy {accuracy:.2f} is below {limits.canary_accuracy:g}"
    if limits.position_bias is not None and pairs.bias is not None and abs(pairs.bias) > limits.position_bias:
        yield f"position bias {pairs.bias:+.2f} is beyond {limits.position_bias:g}"
