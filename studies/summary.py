"""The result of a study as data: the scores of each arm by seed, and the judges compared with each other arm.

A language model's arm is compared with its controls as well.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from shared.contracts.driver import SUGGESTION_OUTCOMES
from studies.arms import ARMS
from studies.curves import SCORES, Curve
from studies.plan import Trial
from studies.stats import Reals, improvement_estimate, iqm_estimate, permutation_p

SUBJECT: Final = "judges"
MODEL: Final = "llm"
CONTROLS: Final = ("visits", "judges", "rules-noisy", "rules-bank", "llm-shuffled")
"""What `llm` is compared with. Fewer comparisons give fewer chance findings."""
BASELINE: Final = "visits"
"""What assisted arms are compared with: they add help, and no reward model."""
DIGITS: Final = 4

Curves = Mapping[Trial, Curve]


def summarise(curves: Curves) -> dict[str, Any]:
    """Return `arms` with the scores of each seed, and `against` with each comparison of the judges by learning speed.

    `llm_against` holds those of the arm `llm`, if it has a trial and a control of it has one, and `assisted_against`
    those of each assisted arm.
    Lists of an arm have the same order: world by world, seed by seed. Arms without a finished trial are omitted.
    """
    worlds = sorted({trial.world for trial in curves})
    helped = [arm for arm in ARMS if ARMS[arm].assisted]
    assisted = {arm: rows for arm in helped if (rows := _comparisons(curves, worlds, arm, [BASELINE]))}
    return {
        "worlds": worlds,
        "arms": {arm: _arm(_of(curves, arm), worlds) for arm in ARMS if _of(curves, arm)},
        "against": _comparisons(curves, worlds, SUBJECT, ARMS),
        **({"llm_against": rows} if (rows := _comparisons(curves, worlds, MODEL, CONTROLS)) else {}),
        **({"assisted_against": assisted} if assisted else {}),
    }


def _of(curves: Curves, arm: str) -> list[tuple[Trial, Curve]]:
    found = [(trial, curve) for trial, curve in curves.items() if trial.arm == arm]
    return sorted(found, key=lambda one: (one[0].world, one[0].seed))


def strata(curves: Curves, arm: str, score: str, worlds: list[str]) -> list[Reals]:
    """The scores of an arm, one array per world in which it has a trial."""
    found = [[SCORES[score](curve) for trial, curve in _of(curves, arm) if trial.world == world] for world in worlds]
    return [np.array(values) for values in found if values]


def _arm(found: list[tuple[Trial, Curve]], worlds: list[str]) -> dict[str, Any]:
    curves = dict(found)
    arm = found[0][0].arm
    result: dict[str, Any] = {
        "seeds": [trial.seed for trial, _ in found],
        **({"worlds": [trial.world for trial, _ in found]} if len(worlds) > 1 else {}),
    }
    for name, score in SCORES.items():
        result[name] = [round(score(curve), DIGITS) for _, curve in found]
    result["finished_after"] = [curve.finished_after for _, curve in found]
    result["shaped"] = [curve.shaped for _, curve in found]
    if any(curve.label_accuracy is not None for _, curve in found):
        result["label_accuracy"] = [curve.label_accuracy for _, curve in found]
    if any(curve.suggestions is not None for _, curve in found):
        result["suggestions"] = _suggestions([curve for _, curve in found])
    if all(curve.most is not None for _, curve in found):
        result["milestone_after"] = _milestone_after([curve for _, curve in found])
    result["iqm"] = {name: _interval(iqm_estimate(*strata(curves, arm, name, worlds))) for name in SCORES}
    return result


def _milestone_after(curves: list[Curve]) -> list[list[int | None]]:
    """For each number of milestones that a trial reached: the steps after which each trial first had it, or None."""
    top = max(max(curve.most or (0,)) for curve in curves)
    return [[curve.reached_after(milestones) for curve in curves] for milestones in range(1, top + 1)]


def _suggestions(curves: list[Curve]) -> dict[str, list[int]]:
    """Suggestions of each trial, by outcome."""
    return {name: [(curve.suggestions or {}).get(name, 0) for curve in curves] for name in SUGGESTION_OUTCOMES}


def _comparisons(curves: Curves, worlds: list[str], subject: str, others: Iterable[str]) -> dict[str, Any]:
    """Compare `subject` with other arms, over the worlds in which both have trials.

    The first numbers are those of the learning speed; `final` and `finished` hold the other scores'. In a study of
    several worlds, `worlds` names those that were compared.
    """
    against: dict[str, Any] = {}
    for arm in others:
        both = [w for w in worlds if {subject, arm} <= {trial.arm for trial in curves if trial.world == w}]
        if arm == subject or not both:
            continue
        rows = {name: _comparison(curves, (subject, arm), name, both) for name in SCORES}
        seeds = [sum(trial.arm == one for trial in curves if trial.world in both) for one in (subject, arm)]
        where = {"worlds": both} if len(worlds) > 1 else {}
        against[arm] = {"score": "speed", **rows.pop("speed"), "seeds": seeds, **where, **rows}
    return against


def _comparison(curves: Curves, arms: tuple[str, str], score: str, worlds: list[str]) -> dict[str, float]:
    first, second = (strata(curves, arm, score, worlds) for arm in arms)
    found = _interval(improvement_estimate(first, second))
    return {"improvement": found.pop("value"), **found, "p": float(f"{permutation_p(first, second):.3g}")}


def _interval(estimate: Any) -> dict[str, float]:
    return {name: round(getattr(estimate, name), DIGITS) for name in ("value", "low", "high")}
