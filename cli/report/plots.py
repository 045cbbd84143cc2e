"""The plots of a report, as SVG text. Missing values are gaps, never zeros."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cli.report.data import ReportData, RoomSteps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GREY = "#2f6fb7", "#c9741a", "#2d8a57", "#8a949f"
ROOMS_PER_ROW: Final = 16  # the two hexadecimal digits of a room number are its row and column


def plot_learning(data: ReportData) -> str:
    """Plot milestones, rooms and return per episode over the epochs."""
    figure, (left, middle, right) = _panels(3)
    rows = data.rows
    epochs = [row.epoch for row in rows]
    for axes, fact in ((left, "milestones"), (middle, "rooms")):
        _line(axes, epochs, [row.metrics.get(f"{fact}_mean") for row in rows], BLUE, "training, mean")
        _line(axes, epochs, [row.metrics.get(f"{fact}_max") for row in rows], GREY, "training, best episode")
        tested = [(row.evaluation or {}).get(f"{fact}_mean") for row in rows]
        _line(axes, epochs, tested, ORANGE, "evaluation, mean")
        axes.set_ylim(bottom=0)
        _label(axes, f"{fact} per episode")
    _line(right, epochs, [row.metrics.get("return_mean") for row in rows], BLUE, "return")
    _label(right, "mean return per episode")
    return _svg(figure)


def plot_judging(data: ReportData) -> str:
    """Plot the distribution of the scores and the agreement of the votes."""
    figure, (left, right) = _panels(2)
    epochs = [row.epoch for row in data.rows]
    shown = [[one.weighted for one in data.scores[epoch] if one.weighted is not None] for epoch in epochs]
    known = [(epoch, values) for epoch, values in zip(epochs, shown, strict=True) if values]
    if known:
        left.violinplot([values for _, values in known], positions=[epoch for epoch, _ in known], showmedians=True)
    left.set_ylim(0, 1)
    _ticks(left, epochs)
    left.set_title("scores of segments", fontsize=10)
    left.set_xlabel("epoch")
    _line(right, epochs, [row.agreement for row in data.rows], GREEN, "unanimous share")
    right.set_ylim(0, 1.02)
    _label(right, "agreement of votes")
    return _svg(figure)


def plot_accuracy(data: ReportData) -> str:
    """Plot how many held-out pairs each reward model orders correctly; a coin flip gets half of them right."""
    figure, (axes,) = _panels(1)
    epochs = [row.epoch for row in data.rows]
    _line(axes, epochs, [row.reward_model_accuracy for row in data.rows], BLUE, "confident held-out pairs")
    axes.axhline(0.5, color=GREY, linestyle=":", linewidth=1, label="coin flip")
    for row in data.rows:
        if row.reward_model_accuracy is not None and row.reward_model_passed is False:
            axes.plot(row.epoch, row.reward_model_accuracy, "x", color=ORANGE, markersize=9)
    axes.set_ylim(0, 1.02)
    _label(axes, "correctly ordered pairs; x: gates failed")
    return _svg(figure)


def plot_rooms(data: ReportData) -> str:
    """Plot the steps per room of the recorded segments: one panel per area, darker for more steps."""
    total: RoomSteps = sum(data.rooms.values(), start=type(next(iter(data.rooms.values())))())
    groups = sorted({group for group, _ in total})
    figure, panels = _panels(len(groups), height=3.4)
    for axes, group in zip(panels, groups, strict=True):
        _map(axes, group, {room: steps for (where, room), steps in total.items() if where == group})
    return _svg(figure)


def _map(axes: "Axes", group: int, steps: dict[int, int]) -> None:
    from math import log1p

    rows = [room // ROOMS_PER_ROW for room in steps]
    columns = [room % ROOMS_PER_ROW for room in steps]
    grid = [[float("nan")] * (max(columns) - min(columns) + 1) for _ in range(max(rows) - min(rows) + 1)]
    for room, number in steps.items():
        row, column = room // ROOMS_PER_ROW - min(rows), room % ROOMS_PER_ROW - min(columns)
        grid[row][column] = log1p(number)
        axes.text(column, row, f"{number}", ha="center", va="center", fontsize=8)
    axes.imshow(grid, cmap="YlGn", vmin=0, vmax=2 * log1p(max(steps.values())))  # pale enough for readable numbers
    axes.set_title(f"group {group}: steps in each room", fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])


def _panels(number: int, height: float = 2.8) -> tuple["Figure", Sequence[Any]]:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * max(1, number), height), layout="constrained")
    return figure, figure.subplots(1, max(1, number), squeeze=False)[0]


def _line(axes: "Axes", epochs: Sequence[int], values: Sequence[float | None], colour: str, label: str) -> None:
    known = [(epoch, value) for epoch, value in zip(epochs, values, strict=True) if value is not None]
    if known:
        axes.plot([epoch for epoch, _ in known], [value for _, value in known], "o-", color=colour, label=label)
    _ticks(axes, epochs)


def _ticks(axes: "Axes", epochs: Sequence[int]) -> None:
    axes.set_xticks(list(epochs)[:: max(1, len(epochs) // 10)])


def _label(axes: "Axes", title: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("epoch")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, frameon=False)


def _svg(figure: "Figure") -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
