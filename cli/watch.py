"""Shows the progress of a run: one live line on a terminal, plain lines elsewhere, JSON lines on request.

It reads the event stream and reconnects when the coordinator restarts.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from cli.client import CoordinatorClient
from cli.console import format_epoch, format_number, overwrite_line, print_line, print_status, run_status
from cli.errors import UNREACHABLE, CliError

FINAL_STATES: Final = ("finished", "failed", "stopped")
NO_ANSWER_TIMEOUT_S: Final = 60.0  # after this silence the system counts as gone
RECONNECT_PAUSE_S: Final = 1.0
PLAIN_INTERVAL_S: Final = 10.0  # shorter intervals flood log files


def watch_run(client: CoordinatorClient, run: str, as_json: bool, stop: threading.Event | None = None) -> str:
    """Show the run until it ends and return its final state; `stop` ends the watch early, with the state "unknown"."""
    show = _print_json if as_json else _show_live if sys.stderr.isatty() else _PlainOutput()
    for kind, document in _events(client, run, stop or threading.Event()):
        show(kind, document)
        if kind == "run" and document["state"] in FINAL_STATES:
            if show is _show_live:
                print_status("")
            print_status(run_status(run, document))
            return str(document["state"])
    return "unknown"


def _events(client: CoordinatorClient, run: str, stop: threading.Event) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of the stream; reconnect when it breaks, until `stop` is set."""
    import httpx

    last = time.monotonic()

    def tracked(lines: Iterator[str]) -> Iterator[str]:
        nonlocal last
        for text in lines:  # comments count as well: they are keep-alives
            last = time.monotonic()
            yield text

    while not stop.is_set():
        try:
            with client.stream(f"/runs/{run}/events") as lines:
                yield from parse_events(tracked(lines))
        except (httpx.TransportError, CliError) as error:
            if isinstance(error, CliError) and error.code != UNREACHABLE:
                raise
            if time.monotonic() - last > NO_ANSWER_TIMEOUT_S:
                raise CliError(
                    UNREACHABLE, f"No answer for {NO_ANSWER_TIMEOUT_S:.0f} s ({error}): check that the system runs."
                ) from error
        stop.wait(RECONNECT_PAUSE_S)


def parse_events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield kind and document of each server-sent event; skip comments."""
    kind = ""
    for text in lines:
        name, _, value = text.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def describe_progress(progress: dict[str, Any]) -> str:
    """Describe the progress of a run in one line."""
    parts = [
        f"epoch {format_epoch(progress['epoch'], progress['epochs_planned'])}",
        f"{progress['steps']}/{progress['epoch_steps']} steps",
        format_number(progress["steps_per_s"], "{:.0f} steps/s"),
        f"segments {progress['segments_recorded']} recorded, {progress['segments_judged']} judged, "
        f"{progress['segments_left']} left",
        f"{progress['votes']} votes",
        f"rm accuracy {format_number(progress['reward_model_accuracy'])}",
        f"eta {format_duration(progress['eta_s'])}",
    ]
    return " | ".join(parts)


def format_duration(seconds: float | None) -> str:
    """Format seconds as `1 h 05 min` or `4:09 min`."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes}:{rest:02d} min"


def _print_json(kind: str, document: dict[str, Any]) -> None:
    print_line(json.dumps({"kind": kind, **document}))


def _show_live(kind: str, document: dict[str, Any]) -> None:
    if kind == "progress":
        overwrite_line(f"{describe_progress(document)}  {document['doing']}")


class _PlainOutput:
    """Lines for a log file: one at each change of activity, and one every few seconds."""

    def __init__(self) -> None:
        self._activity, self._printed_at = "", 0.0

    def __call__(self, kind: str, document: dict[str, Any]) -> None:
        """Print the progress if it is new or due."""
        if kind != "progress":
            return
        activity = document["doing"].partition(":")[0]
        if activity != self._activity or time.monotonic() - self._printed_at > PLAIN_INTERVAL_S:
            self._activity, self._printed_at = activity, time.monotonic()
            print_status(f"{describe_progress(document)} | {document['doing']}")
