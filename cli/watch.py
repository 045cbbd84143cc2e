"""Shows the progress of a run: a live view on a terminal, plain lines elsewhere, JSON lines on request.

It reads the event stream and reconnects when the coordinator restarts.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from cli.client import CoordinatorClient
from cli.console import done_epochs, print_line, print_status, run_status
from cli.errors import UNREACHABLE, CliError
from shared.contracts.events import ENDED_STATES

NO_ANSWER_TIMEOUT_S: Final = 60.0  # after this silence the system counts as gone
RECONNECT_PAUSE_S: Final = 1.0
HINT: Final = "ctrl-C ends this view; the run continues."
DEMO_HINT: Final = "ctrl-C stops the run and the whole system."
PLAIN_INTERVAL_S: Final = 10.0  # shorter intervals flood log files


class View(Protocol):
    """Shows the updates of a run."""

    def __call__(self, kind: str, document: dict[str, Any]) -> None:
        """Show one update."""

    def show_outage(self, reason: str) -> None:
        """Show that the system does not answer."""

    def close(self) -> None:
        """Show nothing more."""


def watch_run(client: CoordinatorClient, run: str, as_json: bool, stop: threading.Event | None = None) -> str:
    """Show the run until it ends and return its final state; `stop` ends the watch early, with the state "unknown"."""
    view = _make_view(run, as_json, HINT if stop is None else DEMO_HINT)
    end: dict[str, Any] | None = None
    try:
        for kind, document in _events(client, run, stop or threading.Event(), view.show_outage):
            view(kind, document)
            if kind == "run" and document["state"] in ENDED_STATES:
                end = document
                break
    finally:
        view.close()
    if end is None:
        return "unknown"
    print_status(run_status(run, end))
    return str(end["state"])


def _make_view(run: str, as_json: bool, hint: str) -> View:
    if as_json:
        return _JsonOutput()
    if not sys.stderr.isatty():
        return _PlainOutput()
    from cli.live_view import LiveView  # rich takes a moment to import

    return LiveView(run, hint)


def _events(
    client: CoordinatorClient, run: str, stop: threading.Event, show_outage: Callable[[str], None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of the stream; reconnect when it breaks, until `stop` is set. `show_outage` gets the reason."""
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
        except CliError as error:
            if error.code != UNREACHABLE:
                raise
            if time.monotonic() - last > NO_ANSWER_TIMEOUT_S:
                raise CliError(UNREACHABLE, f"No answer for {NO_ANSWER_TIMEOUT_S:.0f} s: {error}") from error
            show_outage(str(error))
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
    from cli.live_view import describe_stage, time_left

    stage = progress["stage"]
    done = f"{done_epochs(progress['epoch'], progress['epochs_planned'], progress['state'])} epochs done"
    figures = describe_stage(progress, stage) if stage else progress["doing"]
    left = time_left(progress)
    return " | ".join(part for part in (f"epoch {progress['epoch']} ({done})", stage, figures, left) if part)


class _JsonOutput:
    """One JSON line per update on standard output."""

    def __call__(self, kind: str, document: dict[str, Any]) -> None:
        """Print the update."""
        print_line(json.dumps({"kind": kind, **document}))

    def show_outage(self, reason: str) -> None:
        """Print nothing: the stream continues."""

    def close(self) -> None:
        """Nothing is left to print."""


class _PlainOutput:
    """Lines for a log file: one at each change of stage, and one every few seconds."""

    def __init__(self) -> None:
        self._activity, self._printed_at = "", 0.0

    def __call__(self, kind: str, document: dict[str, Any]) -> None:
        """Print the progress if it is new or due."""
        if kind != "progress":
            return
        activity = document["stage"] or document["doing"]
        if activity != self._activity or time.monotonic() - self._printed_at > PLAIN_INTERVAL_S:
            self._activity, self._printed_at = activity, time.monotonic()
            print_status(describe_progress(document))

    def show_outage(self, reason: str) -> None:
        """Print the reason once."""
        if self._activity != reason:
            self._activity = reason
            print_status(f"Retrying: {reason}")

    def close(self) -> None:
        """Every line is already printed."""
