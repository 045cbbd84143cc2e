"""What the command line prints: data to standard output, everything else to standard error."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def say(text: str) -> None:
    """A line for people, beside the data."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def data(value: Any) -> None:
    """Data as JSON, for other programs."""
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")
    sys.stdout.flush()


def line(text: str) -> None:
    """One line of output."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table: drawn on a terminal, tab-separated where another program reads."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            line("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table

    drawn = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        drawn.add_column(column, justify="left" if column in ("run", "state", "world", "reason") else "right")
    for row in rows:
        drawn.add_row(*row)
    Console().print(drawn)


def number(value: Any, pattern: str = "{:.2f}") -> str:
    """A figure, or a dash where there is none: missing is never shown as 0."""
    return "-" if value is None else pattern.format(value)


def epochs_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """One line for each finished epoch of a run."""
    columns = ("epoch", "steps", "episodes", "recorded", "judged", "abstained", "dead", "votes", "agreement")
    more = ("rm accuracy", "rm used")
    table(title, (*columns, *more), [_epoch_row(row) for row in rows])


def _epoch_row(row: Mapping[str, Any]) -> list[str]:
    used = row["reward_model"]
    return [
        str(row["epoch"]),
        str(row["steps"]),
        str(row["episodes"]),
        str(row["segments_recorded"]),
        str(row["segments_judged"]),
        str(row["segments_abstained"]),
        str(row["segments_dead"]),
        str(row["votes"]),
        number(row["agreement"]),
        number(row["reward_model_accuracy"]),
        f"epoch {row['reward_model_epoch']}: {used[:8]}" if used else "none",
    ]
