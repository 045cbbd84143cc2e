"""The pictures of a study: learning curves with intervals, and the scores of single trials. PNG."""

import io
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from studies.arms import ARMS
from studies.curves import SCORES, TITLES, Curve
from studies.stats import Reals, iqm_rows, resampled
from studies.summary import Curves, strata

_PALETTE: Final = (
    "#4c566a", "#d08770", "#c2185b", "#8f5902", "#b48ead", "#2e7d32", "#66a61e", "#d4a017", "#9c27b0", "#20b2aa",
    "#556b2f", "#b8860b", "#87ceeb", "#888888", "#c0c0c0", "#1f5fa8", "#7b1fa2", "#ff1493", "#7b8fd6", "#e60049",
    "#0a7d5a", "#f08a00", "#00838f", "#6a4a3a", "#ff7f50",
)  # fmt: skip
COLOURS: Final = dict(zip(ARMS, _PALETTE, strict=True))


def draw_curves(curves: Curves) -> bytes:
    """Draw the interquartile mean of each arm over steps, with a 95 % bootstrap band: milestones, and finished."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(12, 4.6), dpi=110)
    for arm in present(curves):
        own = {trial: curve for trial, curve in curves.items() if trial.arm == arm}
        worlds = sorted({trial.world for trial in own})
        found = [[curve for trial, curve in own.items() if trial.world == world] for world in worlds]
        for axes, name in zip(panels, ("share", "finished"), strict=True):
            _draw_arm(axes, arm, found, name)
    for axes, title in zip(panels, ("share of milestones", "share of episodes that finish"), strict=True):
        axes.set(xlabel="environment steps", title=title, ylim=(-0.02, 1.02))
    lines = panels[0].get_legend_handles_labels()
    figure.legend(*lines, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=2, frameon=False, fontsize=9)
    return _png(figure)


def draw_points(curves: Curves) -> bytes:
    """Draw one point per trial for each score, and a line at each arm's interquartile mean."""
    from matplotlib import pyplot

    arms = present(curves)
    worlds = sorted({trial.world for trial in curves})
    figure, panels = pyplot.subplots(1, len(SCORES), figsize=(12, 3.6), dpi=110, sharey=True)
    for axes, score in zip(panels, SCORES, strict=True):
        for place, arm in enumerate(arms):
            values = np.concatenate(strata(curves, arm, score, worlds))
            spread = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1)
            axes.plot(place + spread, values, "o", color=COLOURS[arm], markersize=4, alpha=0.8)
            middle = iqm_rows(np.sort(values)[None])[0]
            axes.hlines(middle, place - 0.3, place + 0.3, color=COLOURS[arm])
        axes.set(title=TITLES[score], ylim=(-0.02, 1.02))
        axes.set_xticks(range(len(arms)), arms, rotation=40, ha="right", fontsize=8)
    return _png(figure)


def present(curves: Curves) -> list[str]:
    """The arms that have a trial, in the order of ARMS."""
    return [arm for arm in ARMS if any(trial.arm == arm for trial in curves)]


def _draw_arm(axes: Any, arm: str, found: list[list[Curve]], name: str) -> None:
    """Draw one arm's line and band, up to the evaluation that all of its trials have; `found`: those of each world."""
    everywhere = [curve for world in found for curve in world]
    length = min(len(curve.steps) for curve in everywhere)
    values = [np.array([getattr(curve, name)[:length] for curve in world]) for world in found]
    steps = np.array([curve.steps[:length] for curve in everywhere]).mean(0)
    low, high = band(values)
    axes.plot(steps, iqm_rows(np.sort(np.concatenate(values).T, axis=1)), color=COLOURS[arm], label=ARMS[arm].title)
    axes.fill_between(steps, low, high, color=COLOURS[arm], alpha=0.12, linewidth=0)


def band(values: Sequence[Reals]) -> tuple[Reals, Reals]:
    """95 % bootstrap interval of the IQM at every evaluation. `values`: (trials, evaluations) of each world.

    As in the tables, trials are resampled within their world.
    """
    rng = np.random.default_rng(0)
    bounds = []
    for worlds in zip(*(one.T for one in values), strict=True):
        draws = np.concatenate([resampled(scores, rng) for scores in worlds], axis=1)
        bounds.append(np.quantile(iqm_rows(np.sort(draws, axis=1)), (0.025, 0.975)))
    low, high = np.array(bounds).T
    return low, high


def _png(figure: Any) -> bytes:
    """The picture as PNG, large enough for a legend beside its panels."""
    from matplotlib import pyplot

    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None}, bbox_inches="tight")
    pyplot.close(figure)
    return buffer.getvalue()
