"""The picture of the benchmark for judges: each judge's share of rightly ordered pairs, with its interval. PNG."""

import io
from collections.abc import Mapping
from typing import Any, Final

from studies.judges.table import BenchRow
from studies.stats import Interval

CHANCE: Final = 0.5
PANELS: Final = {
    "pairs_accuracy": "pairs that differ in gain",
    "auc": "any gain or none (AUC)",
    "count_accuracy": "several milestones or one",
    "next_accuracy": "equal gain: next three segments",
}


def draw_rows(rows: Mapping[str, BenchRow]) -> bytes:
    """Draw a line for each judge: value and 95 % interval of each figure that it has, the best judge on top."""
    from matplotlib.figure import Figure

    names = sorted(rows, key=lambda name: _value(rows[name].pairs_accuracy))
    figure = Figure(figsize=(13, 1.4 + 0.4 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (figure_name, title) in zip(panels, PANELS.items(), strict=True):
        for place, name in enumerate(names):
            _draw_interval(axes, place, getattr(rows[name], figure_name))
        axes.axvline(CHANCE, color="grey", linewidth=0.8, linestyle=":")
        axes.set(title=title, xlim=(0.3, 1.02), ylim=(-0.6, len(names) - 0.4))
        axes.grid(axis="x", alpha=0.25)
    panels[0].set_yticks(range(len(names)), names)
    figure.supxlabel("share ordered rightly, 95 % interval; dotted: chance", fontsize=9)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110, metadata={"Software": None})
    return picture.getvalue()


def _draw_interval(axes: Any, place: int, interval: Interval | None) -> None:
    if interval is not None:
        value, low, high = interval
        axes.errorbar(value, place, xerr=[[value - low], [high - value]], fmt="o", color="#1b6ca8", capsize=3)


def _value(interval: Interval | None) -> float:
    return CHANCE if interval is None else interval[0]
