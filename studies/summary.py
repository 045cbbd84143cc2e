"""The result of a study as data: the scores of each arm by seed, and the judges compared with each other arm."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from studies.arms import ARMS
from studies.curves import SCORES, Curve
from studies.plan import Trial
from studies.stats import Reals, improvement_estimate, iqm_estimate, permutation_p

SUBJECT: Final = "judges"
DIGITS: Final = 4

Curves = Mapping[Trial, Curve]


def summarise(curves: Curves) -> dict[str, Any]:
    """Return `arms` with the scores of each seed, and `against` with each comparison by learning speed.

    Lists of an arm have the same order: world by world, seed by seed. Arms without a finished trial are omitted.
    """
    worlds = sorted({trial.world for trial in curves})
    return {
        "worlds": worlds,
        "arms": {arm: _arm(_of(curves, arm), worlds) for arm in ARMS if _of(curves, arm)},
        "against": _comparisons(curves, worlds),
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
    result["iqm"] = {name: _interval(iqm_estimate(*strata(curves, arm, name, worlds))) for name in SCORES}
    return result


def _comparisons(curves: Curves, worlds: list[str]) -> dict[str, Any]:
    """Compare the judges with every other arm, over the worlds in which both have trials.

    The first numbers are those of the learning speed; `final` and `finished` hold the other scores'.
    """
    against: dict[str, Any] = {}
    for arm in ARMS:
        both = [w for w in worlds if {SUBJECT, arm} <= {trial.arm for trial in curves if trial.world == w}]
        if arm == SUBJECT or not both:
            continue
        rows = {name: _comparison(curves, arm, name, both) for name in SCORES}
        seeds = [sum(trial.arm == one for trial in curves if trial.world in both) for one in (SUBJECT, arm)]
        against[arm] = {"score": "speed", **rows.pop("speed"), "seeds": seeds, **rows}
    return against


def _comparison(curves: Curves, arm: str, score: str, worlds: list[str]) -> dict[str, float]:
    subject, other = strata(curves, SUBJECT, score, worlds), strata(curves, arm, score, worlds)
    estimate = improvement_estimate(subject, other)
    found = _interval(estimate)
    return {"improvement": found.pop("value"), **found, "p": float(f"{permutation_p(subject, other):.3g}")}


def _interval(estimate: Any) -> dict[str, float]:
    return {name: round(getattr(estimate, name), DIGITS) for name in ("value", "low", "high")}
