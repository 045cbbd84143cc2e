"""Terminal output: data goes to standard output, everything for people to standard error."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

DEFAULT_COLUMNS: Final = 80


def print_status(text: str) -> None:
    """Print one line for people to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def overwrite_line(text: str) -> None:
    """Overwrite the progress line on standard error; no-op without a terminal."""
    if sys.stderr.isatty():
        width = _columns() - 1  # a wrapped line would be overwritten only in part
        sys.stderr.write(f"\r\x1b[2K{text if len(text) <= width else f'{text[: width - 1]}…'}")
        sys.stderr.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or DEFAULT_COLUMNS
    except OSError:  # no terminal size
        return DEFAULT_COLUMNS


def print_json(value: Any) -> None:
    """Print data as JSON to standard output."""
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """Print one line to standard output."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, tab-separated otherwise."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            print_line("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text(title), title_justify="left", header_style="bold")
    for column in columns:
        drawn.add_column(Text(column), justify="left" if column in ("run", "state", "world", "reason") else "right")
    for row in rows:
        drawn.add_row(*map(Text, row))  # Rich would parse a plain string as markup, and a reason may contain brackets
    Console().print(drawn)


def format_number(value: Any, pattern: str = "{:.2f}") -> str:
    """Format a number; a missing one becomes a dash, never 0."""
    return "-" if value is None else pattern.format(value)


def run_status(run: str, record: Mapping[str, Any]) -> str:
    """Describe the state of a run in one sentence, with its reason if there is one."""
    return f"{run} is {record['state']}" + (f": {record['reason']}" if record["reason"] else ".")


def format_epoch(epoch: int, planned: int | None) -> str:
    """Format "this epoch/planned epochs", counted from 1; `epoch` itself counts from 0."""
    return f"{epoch + 1}/{planned or '-'}"


EPOCH_COLUMNS: Final = (
    *("epoch", "steps", "episodes", "recorded", "judged", "abstained", "dead", "votes", "agreement"),
    *("shaped by", "rm accuracy", "rm passed"),
)


def print_epochs(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one line per finished epoch of a run."""
    print_table(title, EPOCH_COLUMNS, [epoch_cells(row) for row in rows])


def epoch_cells(row: Mapping[str, Any]) -> list[str]:
    """Format one epoch. `shaped by` is the reward model used in it; the accuracy is that of its successor."""
    used, passed = row["reward_model"], row["reward_model_passed"]
    return [
        *(str(row[name]) for name in ("epoch", "steps", "episodes", "segments_recorded", "segments_judged")),
        *(str(row[name]) for name in ("segments_abstained", "segments_dead", "votes")),
        format_number(row["agreement"]),
        f"epoch {row['reward_model_epoch']} {used[:8]}" if used else "none",
        format_number(row["reward_model_accuracy"]),
        "-" if passed is None else "yes" if passed else "no",
    ]
