"""The gates that a reward model must pass before it may shape rewards, by the names that the card shows.

A figure that could not be measured fails its gate: a model without evidence is not used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from services.rewardmodel.domain.metrics import Reliability

ROUNDING: Final = 1e-9  # 0.65 and a lead of 0.05 make a little more than 0.70


@dataclass(frozen=True, slots=True)
class GateThresholds:
    """The thresholds. Shares are in [0, 1]."""

    accuracy_confident: float = 0.70  # below it, shaping is mostly noise
    accuracy_all: float = 0.60
    over_step_index: float = 0.05  # with a smaller lead the model may only measure time
    over_linear: float = -0.05  # a linear model may be as good; a network that is clearly worse is broken
    shuffled_low: float = 0.40  # outside this band the held-out figures are chance or leak
    shuffled_high: float = 0.60
    ece: float = 0.25  # of a hundred pairs, half of that is chance
    pairs: int = 50  # with fewer confident held-out pairs the figures are noise
    episodes: int = 5
    spread: float = 0.1  # standard deviations; a flat potential gives no signal


@dataclass(frozen=True, slots=True)
class GateInputs:
    """Measurements on held-out episodes; None for what could not be measured."""

    accuracy_confident: float | None
    accuracy_all: float | None
    confident_pairs: int
    episodes: int
    baselines: Mapping[str, float | None]
    reliability: Reliability | None
    spread: float | None
    quorum: bool


def evaluate_gates(inputs: GateInputs, thresholds: GateThresholds) -> dict[str, bool]:
    """Evaluate each gate; return whether it passed, by name."""
    accuracy = inputs.accuracy_confident
    shuffled = inputs.baselines.get("shuffled_labels")
    return {
        "quorum": inputs.quorum,
        "enough_pairs": inputs.confident_pairs >= thresholds.pairs,
        "enough_episodes": inputs.episodes >= thresholds.episodes,
        "accuracy_confident": _at_least(accuracy, thresholds.accuracy_confident),
        "accuracy_all": _at_least(inputs.accuracy_all, thresholds.accuracy_all),
        "beats_step_index": _beats(accuracy, inputs.baselines.get("step_index"), thresholds.over_step_index),
        "beats_linear": _beats(accuracy, inputs.baselines.get("linear"), thresholds.over_linear),
        "shuffled_is_chance": shuffled is not None and thresholds.shuffled_low <= shuffled <= thresholds.shuffled_high,
        "calibrated": inputs.reliability is not None and inputs.reliability.ece <= thresholds.ece,
        "spread": _at_least(inputs.spread, thresholds.spread),
    }


def _at_least(figure: float | None, threshold: float) -> bool:
    return figure is not None and figure >= threshold


def _beats(figure: float | None, baseline: float | None, lead: float) -> bool:
    return figure is not None and baseline is not None and figure - baseline >= lead - ROUNDING
