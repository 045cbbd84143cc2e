"""Terminal output: data goes to standard output, everything for people to standard error."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

DEFAULT_COLUMNS: Final = 80
LEFT_COLUMNS: Final = ("run", "state", "world", "reason", "consumer", "shaped by", "model")


def print_status(text: str) -> None:
    """Print one line for people to standard error.

    A closed terminal, a full disk or a `tee` that has ended refuses it: no work ends because of an unread message.
    """
    _write_status(f"{text}\n")


def overwrite_line(text: str) -> None:
    """Overwrite the progress line on standard error; no-op without a terminal."""
    if sys.stderr.isatty():
        width = _columns() - 1  # a wrapped line would be overwritten only in part
        _write_status(f"\r\x1b[2K{text if len(text) <= width else f'{text[: width - 1]}…'}")


def _write_status(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(text)
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
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text(title), title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, padding=0)
    for column in columns:
        justify: Any = "left" if column in LEFT_COLUMNS else "right"
        drawn.add_column(Text(column), justify=justify, overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))  # Rich would parse a plain string as markup, and a reason may contain brackets
    Console().print(drawn)


def format_number(value: Any, pattern: str = "{:.2f}") -> str:
    """Format a number; a missing one becomes a dash, never 0."""
    return "-" if value is None else pattern.format(value)


def run_status(run: str, record: Mapping[str, Any]) -> str:
    """Describe the state of a run in one sentence, with its reason if there is one."""
    return f"{run} is {record['state']}" + (f": {record['reason']}" if record["reason"] else ".")


def done_epochs(epoch: int, planned: int | None, state: str) -> str:
    """Format how many epochs are done, e.g. "1 of 3". Epochs are numbered from 0, so epoch 1 runs after one is done."""
    return f"{epoch + (state == 'finished')} of {planned or 'many'}"


def format_duration(seconds: float | None) -> str:
    """Format seconds as `40 s`, `4 min 09 s` or `1 h 05 min`; unknown ones as a dash."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def print_epochs(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one line per finished epoch: what fits 80 columns on a terminal, all columns otherwise."""
    if sys.stdout.isatty():
        print_table(title, SHORT_COLUMNS, [short_cells(row) for row in rows])
    else:
        print_table(title, EPOCH_COLUMNS, [epoch_cells(row) for row in rows])


EPOCH_COLUMNS: Final = (
    *("epoch", "steps", "episodes", "milestones", "recorded", "judged", "abstained", "dead", "votes", "agreement"),
    *("shaped by", "rm accuracy", "rm passed"),
)
SHORT_COLUMNS: Final = ("epoch", "steps", "steps/s", "judged", "agree", "score", "shaped by", "accuracy", "model")


def epoch_cells(row: Mapping[str, Any]) -> list[str]:
    """Format one epoch. `shaped by` is the reward model used in it; the accuracy is that of its successor.

    `milestones` is the mean over the evaluation episodes with sampled actions at the end of the epoch.
    """
    used, passed = row["reward_model"], row["reward_model_passed"]
    return [
        *(str(row[name]) for name in ("epoch", "steps", "episodes")),
        format_number((row["evaluation"] or {}).get("milestones_mean")),
        *(str(row[name]) for name in ("segments_recorded", "segments_judged")),
        *(str(row[name]) for name in ("segments_abstained", "segments_dead", "votes")),
        format_number(row["agreement"]),
        f"epoch {row['reward_model_epoch']} {used[:8]}" if used else "none",
        format_number(row["reward_model_accuracy"]),
        "-" if passed is None else "yes" if passed else "no",
    ]


def short_cells(row: Mapping[str, Any]) -> list[str]:
    """Format one epoch for a terminal. Accuracy and `model` are about the reward model trained on its scores."""
    passed = row["reward_model_passed"]
    return [
        str(row["epoch"]),
        f"{row['steps']:,}",
        format_number(row["steps_per_s"], "{:,.0f}"),
        f"{row['segments_judged']}/{row['segments_recorded']}",
        format_number(row["agreement"]),
        format_number(row["score_mean"]),
        f"epoch {row['reward_model_epoch']}" if row["reward_model"] else "none",
        format_number(row["reward_model_accuracy"]),
        "-" if passed is None else "passed" if passed else "refused",
    ]
