"""The result of a study as data: the IQM of each arm, the probability of improvement of each comparison."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from studies.arms import ARMS
from studies.plan import StudyPlan
from studies.stats import Reals, improvement_estimate, iqm_estimate

Curve = list[dict[str, float]]
MEASURE: Final = "evaluation/milestones_share_mean"
"""Share of the world's milestones that evaluation episodes reach, from the true start."""
SUBJECT: Final = "judges"
RIVALS: Final = ("none", "rnd", "random", "oracle")


def learning_speed(curve: Curve) -> float:
    """Mean of the measure over all epochs (area under the curve): high for learning early and keeping it."""
    return float(np.mean([row[MEASURE] for row in curve]))


def final_value(curve: Curve) -> float:
    """The measure after the last epoch."""
    return curve[-1][MEASURE]


SCORES: Final = {"learning_speed": learning_speed, "final": final_value}


def summarise(plan: StudyPlan, curves: Mapping[str, Mapping[int, Curve]]) -> dict[str, Any]:
    """Summarise the study as JSON data. Arms without a finished trial are omitted."""
    done = {arm: [found[seed] for seed in sorted(found)] for arm, found in curves.items() if found}
    return {
        "world": plan.run.world,
        "steps": plan.run.epoch_steps * (plan.run.planned_epochs or 1),
        "seeds": {arm: len(found) for arm, found in done.items()},
        "measure": MEASURE,
        "arms": {arm: _arm(found) for arm, found in done.items()},
        "comparisons": _comparisons(done),
    }


def scores(found: list[Curve], name: str) -> Reals:
    """One score per seed."""
    return np.array([SCORES[name](curve) for curve in found])


def _arm(found: list[Curve]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name in SCORES:
        values = scores(found, name)
        estimate = iqm_estimate(values)
        result[name] = {
            "iqm": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "by_seed": [round(value, 4) for value in values.tolist()],
        }
    result["shaped_epochs"] = float(np.mean([sum(row["shaped"] for row in curve) for curve in found]))
    return result


def _comparisons(done: Mapping[str, list[Curve]]) -> list[dict[str, Any]]:
    """Compare the judges with every other arm, by both scores."""
    if SUBJECT not in done:
        return []
    rows = []
    for rival in (name for name in RIVALS if name in done):
        for name in SCORES:
            estimate = improvement_estimate(scores(done[SUBJECT], name), scores(done[rival], name))
            rows.append(
                {
                    "arm": SUBJECT,
                    "against": rival,
                    "score": name,
                    "probability_of_improvement": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                }
            )
    return rows


def to_markdown(result: Mapping[str, Any]) -> str:
    """Format the result as two Markdown tables."""
    lines = [
        "| arm | seeds | learning speed: IQM (95 %) | final_value: IQM (95 %) | epochs shaped |",
        "|---|---|---|---|---|",
    ]
    for name, arm in result["arms"].items():
        cells = [f"{arm[score]['iqm']:.3f} ({arm[score]['low']:.3f} to {arm[score]['high']:.3f})" for score in SCORES]
        title = ARMS[name].title
        lines.append(f"| {title} | {result['seeds'][name]} | {' | '.join(cells)} | {arm['shaped_epochs']:.1f} |")
    lines += ["", "| judges against | score | probability of improvement (95 %) |", "|---|---|---|"]
    for row in result["comparisons"]:
        probability = f"{row['probability_of_improvement']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        lines.append(f"| {ARMS[row['against']].title} | {row['score'].replace('_', ' ')} | {probability} |")
    return "\n".join(lines) + "\n"
