"""The pictures of a report, as SVG text. Missing values are gaps, never zeros; every axis says what it shows."""

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from cli.report.data import ReportData, RoomSteps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GREY = "#2f6fb7", "#c9741a", "#2d8a57", "#8a949f"
ROOMS_A_ROW: Final = 16  # a room's number is its row and column in hexadecimal


def plot_learning(material: ReportData) -> str:
    """Milestones, rooms and return of an episode, per epoch."""
    figure, (left, middle, right) = _panels(3)
    rows = material.rows
    epochs = [row.epoch for row in rows]
    for axes, fact in ((left, "milestones"), (middle, "rooms")):
        _line(axes, epochs, [row.metrics.get(f"{fact}_mean") for row in rows], BLUE, "while training, mean")
        _line(axes, epochs, [row.metrics.get(f"{fact}_max") for row in rows], GREY, "best episode")
        tested = [(row.evaluation or {}).get(f"{fact}_mean") for row in rows]
        _line(axes, epochs, tested, ORANGE, "evaluation from the start")
        axes.set_ylim(bottom=0)
        _label(axes, f"{fact} reached in an episode")
    _line(right, epochs, [row.metrics.get("return_mean") for row in rows], BLUE, "return")
    _label(right, "mean return of an episode")
    return _svg(figure)


def plot_judging(material: ReportData) -> str:
    """What the judges said: their scores and how far their votes coincide."""
    figure, (left, right) = _panels(2)
    epochs = [row.epoch for row in material.rows]
    shown = [[one.weighted for one in material.scores[epoch] if one.weighted is not None] for epoch in epochs]
    known = [(epoch, values) for epoch, values in zip(epochs, shown, strict=True) if values]
    if known:
        left.violinplot([values for _, values in known], positions=[epoch for epoch, _ in known], showmedians=True)
    left.set_ylim(0, 1)
    _ticks(left, epochs)
    left.set_title("scores of segments", fontsize=10)
    left.set_xlabel("epoch")
    _line(right, epochs, [row.agreement for row in material.rows], GREEN, "unanimous share")
    right.set_ylim(0, 1.02)
    _label(right, "agreement of the judges' votes")
    return _svg(figure)


def plot_accuracy(material: ReportData) -> str:
    """How well each epoch's reward model orders held-out pairs; a coin gets half of them right."""
    figure, (axes,) = _panels(1)
    epochs = [row.epoch for row in material.rows]
    _line(axes, epochs, [row.reward_model_accuracy for row in material.rows], BLUE, "confident held-out pairs")
    axes.axhline(0.5, color=GREY, linestyle=":", linewidth=1, label="a coin")
    for row in material.rows:
        if row.reward_model_accuracy is not None and row.reward_model_passed is False:
            axes.plot(row.epoch, row.reward_model_accuracy, "x", color=ORANGE, markersize=9)
    axes.set_ylim(0, 1.02)
    _label(axes, "pairs ordered rightly; x: missed its gates")
    return _svg(figure)


def plot_rooms(material: ReportData) -> str:
    """Where the recorded segments were: one panel an area, darker for more steps."""
    total: RoomSteps = sum(material.rooms.values(), start=type(next(iter(material.rooms.values())))())
    groups = sorted({group for group, _ in total})
    figure, panels = _panels(len(groups), height=3.4)
    for axes, group in zip(panels, groups, strict=True):
        _map(axes, group, {room: steps for (where, room), steps in total.items() if where == group})
    return _svg(figure)


def _map(axes: "Axes", group: int, steps: dict[int, int]) -> None:
    from math import log1p

    rows = [room // ROOMS_A_ROW for room in steps]
    columns = [room % ROOMS_A_ROW for room in steps]
    grid = [[float("nan")] * (max(columns) - min(columns) + 1) for _ in range(max(rows) - min(rows) + 1)]
    for room, number in steps.items():
        row, column = room // ROOMS_A_ROW - min(rows), room % ROOMS_A_ROW - min(columns)
        grid[row][column] = log1p(number)
        axes.text(column, row, f"{number}", ha="center", va="center", fontsize=8)
    axes.imshow(grid, cmap="YlGn", vmin=0, vmax=2 * log1p(max(steps.values())))  # pale enough to read the numbers on
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


Plot = Callable[[ReportData], str]
