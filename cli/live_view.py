"""The live view of a run on a terminal: its finished epochs, the stages of the current one, the time that is left."""

import sys
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.console import done_epochs, format_duration, format_number

STAGES: Final = ("starting", "playing", "evaluating", "judging", "teaching")
SHOWN_EPOCHS: Final = 5  # finished epochs above the current one
BAR_WIDTH: Final = 24


class LiveView:
    """Draws a run on standard error and draws it again with every update."""

    def __init__(self, run: str, hint: str, console: Console | None = None) -> None:
        """`hint` says what ctrl-C does."""
        self._run, self._hint = run, hint
        self._epochs: dict[int, dict[str, Any]] = {}
        self._record: dict[str, Any] = {}
        self._progress: dict[str, Any] = {}
        self._lost = ""
        shown_on = console or Console(file=sys.stderr)
        self._live = Live(console=shown_on, auto_refresh=False, redirect_stdout=False)

    def __call__(self, kind: str, document: dict[str, Any]) -> None:
        """Show one update of the run."""
        self._lost = ""
        if kind == "epoch":
            self._epochs[document["epoch"]] = document
        elif kind == "run":
            self._record = document
        elif kind == "progress":
            self._progress = document
        self._draw()

    def show_outage(self, reason: str) -> None:
        """Show that the system does not answer."""
        self._lost = reason
        self._draw()

    def close(self) -> None:
        """Leave the last picture on the terminal."""
        self._live.stop()

    def _draw(self) -> None:
        if not self._live.is_started:
            self._live.start()
        self._live.update(self.render(), refresh=True)

    def render(self) -> RenderableType:
        """The whole picture; every line is cut at the width of the terminal."""
        shown: list[RenderableType] = [self._headline(), *map(_epoch_line, list(self._epochs.values())[-SHOWN_EPOCHS:])]
        if self._progress.get("stage"):
            shown += [_line(f"epoch {self._progress['epoch']}"), _stages(self._progress)]
        shown.append(_line(self._footer()))
        return Group(*shown)

    def _headline(self) -> Text:
        state = self._record.get("state") or self._progress.get("state", "")
        parts = [self._run, state]
        if self._progress:
            epoch, planned = self._progress["epoch"], self._progress["epochs_planned"]
            parts.append(f"{done_epochs(epoch, planned, state)} epochs done")
            parts.append(time_left(self._progress))
        return _line("  ".join(part for part in parts if part), style="bold")

    def _footer(self) -> str:
        if self._lost:
            return f"Retrying: {self._lost}"
        if self._progress.get("stage") is None:
            return str(self._progress.get("doing", "Waiting for the first report."))
        return self._hint


def time_left(progress: dict[str, Any]) -> str:
    """How long the run still takes; empty while nothing is measured."""
    if progress.get("eta_s") is None or (progress["eta_at_least"] and progress["eta_s"] < 1):
        return ""
    least = "at least " if progress.get("eta_at_least") else "about "
    return f"{least}{format_duration(progress['eta_s'])} left"


def describe_stage(progress: dict[str, Any], stage: str) -> str:
    """What is known about one stage of the current epoch."""
    if stage == "starting" and progress["stage_share"] is not None:  # known of an exploration alone
        return f"exploring without a network, {progress['stage_share']:.0%}"
    if stage == "playing":
        rate = format_number(progress["steps_per_s"], ", {:,.0f} steps/s") if progress["steps_per_s"] else ""
        return f"{progress['steps']:,} of {progress['epoch_steps']:,} steps{rate}"
    if stage == "judging":
        outcomes = progress["segments_recorded"] - progress["segments_left"]
        return f"{outcomes} of {progress['segments_recorded']} segments, {progress['votes']} votes"
    return "the reward model learns from the scores" if stage == "teaching" else ""


def _stages(progress: dict[str, Any]) -> Table:
    """One line per stage: its name, its bar, its figures."""
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=12, no_wrap=True)
    table.add_column(width=BAR_WIDTH)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    here = STAGES.index(progress["stage"])
    for number, stage in enumerate(STAGES):
        share = 1.0 if number < here else 0.0
        if number == here:
            share = progress["stage_share"]
        text = describe_stage(progress, stage) if number == here or (stage == "judging" and number > here) else ""
        if number < here:
            text = "done"
        bar = ProgressBar(total=1.0, completed=share or 0.0, pulse=share is None, width=BAR_WIDTH)
        table.add_row(Text(f"  {stage}", style="bold" if number == here else "dim"), bar, Text(text))
    return table


def _epoch_line(row: dict[str, Any]) -> Text:
    judged = f"{row['segments_judged']} of {row['segments_recorded']} judged"
    passed = row["reward_model_passed"]
    model = "" if passed is None else f", model {'passed' if passed else 'refused'}"
    accuracy = format_number(row["reward_model_accuracy"], " at {:.2f}") if passed is not None else ""
    return _line(f"epoch {row['epoch']}  {row['steps']:,} steps, {judged}{model}{accuracy}", style="dim")


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
