"""The gates a reward model must pass before it may shape, each with a name that the card shows.

A figure that could not be measured does not pass: without evidence a model is not used.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from services.rewardmodel.domain.metrics import Reliability


@dataclass(frozen=True, slots=True)
class GateThresholds:
    """The thresholds. Shares are in [0, 1]."""

    accuracy_confident: float = 0.70  # below it shaping is mostly noise
    accuracy_all: float = 0.60
    over_step_index: float = 0.05  # less, and the model may only tell the time
    over_linear: float = -0.05  # a line may be as good as the network; a network clearly worse than it is broken
    shuffled_low: float = 0.40  # outside this band held-out figures are chance or a leak
    shuffled_high: float = 0.60
    ece: float = 0.25  # of a hundred pairs, half of that is chance
    pairs: int = 50  # fewer confident held-out pairs measure nothing
    episodes: int = 5
    spread: float = 0.1  # standard deviations; a flat potential teaches nothing


@dataclass(frozen=True, slots=True)
class GateInputs:
    """What was measured on held-out episodes; None where there was nothing to measure."""

    accuracy_confident: float | None
    accuracy_all: float | None
    confident_pairs: int
    episodes: int
    baselines: Mapping[str, float | None]
    reliability: Reliability | None
    spread: float | None
    quorum: bool


def gates(figures: GateInputs, thresholds: GateThresholds) -> dict[str, bool]:
    """Each gate by name, and whether it is passed."""
    accuracy = figures.accuracy_confident
    shuffled = figures.baselines.get("shuffled_labels")
    return {
        "quorum": figures.quorum,
        "enough_pairs": figures.confident_pairs >= thresholds.pairs,
        "enough_episodes": figures.episodes >= thresholds.episodes,
        "accuracy_confident": _at_least(accuracy, thresholds.accuracy_confident),
        "accuracy_all": _at_least(figures.accuracy_all, thresholds.accuracy_all),
        "beats_step_index": _beats(accuracy, figures.baselines.get("step_index"), thresholds.over_step_index),
        "beats_linear": _beats(accuracy, figures.baselines.get("linear"), thresholds.over_linear),
        "shuffled_is_chance": shuffled is not None and thresholds.shuffled_low <= shuffled <= thresholds.shuffled_high,
        "calibrated": figures.reliability is not None and figures.reliability.ece <= thresholds.ece,
        "spread": _at_least(figures.spread, thresholds.spread),
    }


def _at_least(figure: float | None, threshold: float) -> bool:
    return figure is not None and figure >= threshold


def _beats(figure: float | None, baseline: float | None, by: float) -> bool:
    return figure is not None and baseline is not None and figure >= baseline + by
