"""Watching a run: its progress, its end, and interruptions of the stream."""

import fcntl
import json
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from cli import errors, watch
from cli.client import CoordinatorClient
from cli.commands.run import watch_to_exit_code
from cli.console import format_epoch
from cli.watch import describe_progress, format_duration, parse_events

STREAM = {"content-type": "text/event-stream"}
FINISHED = {"state": "finished", "reason": None}
PROGRESS: dict[str, Any] = {
    "epoch": 1,
    "epochs_planned": 3,
    "steps": 500,
    "epoch_steps": 1000,
    "steps_per_s": None,
    "segments_recorded": 4,
    "segments_judged": 3,
    "segments_left": 1,
    "votes": 9,
    "reward_model_accuracy": None,
    "eta_s": 3725,
}


def test_server_sent_events_are_parsed_without_comments() -> None:
    lines = iter([": keep-alive", "", "event: run", 'data: {"state": "running"}', ""])
    assert list(parse_events(lines)) == [("run", {"state": "running"})]


@pytest.mark.parametrize(
    ("state", "reason", "code", "expected"),
    [
        ("finished", None, errors.OK, "m1 is finished.\n"),
        ("stopped", None, errors.OK, "m1 is stopped.\n"),
        ("failed", "The driver refused it.", errors.FAILED, "m1 is failed: The driver refused it.\n"),
    ],
)
def test_the_end_of_a_watched_run_is_reported(
    state: str, reason: str | None, code: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    news = f"event: run\ndata: {json.dumps({'state': state, 'reason': reason})}\n\n"
    stream = httpx.Response(200, headers=STREAM, text=news)
    http = httpx.Client(base_url="http://zelda", transport=httpx.MockTransport(lambda request: stream))
    assert watch_to_exit_code(CoordinatorClient(http, "http://zelda"), "m1", as_json=False) == code
    assert capsys.readouterr().err == expected


def test_a_watch_survives_a_restart_of_the_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "RECONNECT_PAUSE_S", 0.0)
    away = httpx.ConnectError("refused")
    starting = httpx.Response(503, headers={"content-type": "application/problem+json"}, json={"detail": "It starts."})
    cut = httpx.Response(200, headers=STREAM, text='event: run\ndata: {"state": "running", "reason": null}\n\n')
    end = httpx.Response(200, headers=STREAM, text='event: run\ndata: {"state": "finished", "reason": null}\n\n')
    answers: list[httpx.Response | httpx.ConnectError] = [cut, away, starting, end]

    def answer(request: httpx.Request) -> httpx.Response:
        expected = answers.pop(0)
        if isinstance(expected, Exception):
            raise expected
        return expected

    http = httpx.Client(base_url="http://zelda", transport=httpx.MockTransport(answer))
    assert watch.watch_run(CoordinatorClient(http, "http://zelda"), "m1", as_json=False) == "finished"
    assert answers == []


class Clock:
    """A clock that the test advances."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_keep_alive_comments_extend_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(watch, "RECONNECT_PAUSE_S", 0.0)
    monkeypatch.setattr(watch, "time", clock)

    def quiet() -> Iterator[bytes]:
        yield b'event: run\ndata: {"state": "running", "reason": null}\n\n'
        for _ in range(30):
            clock.now += 10
            yield b": keep-alive\n\n"

    def answer(request: httpx.Request) -> httpx.Response:
        if clock.now == 0:
            return httpx.Response(200, headers=STREAM, content=quiet())
        clock.now += 1
        if clock.now < 310:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, headers=STREAM, text=f"event: run\ndata: {json.dumps(FINISHED)}\n\n")

    http = httpx.Client(base_url="http://zelda", transport=httpx.MockTransport(answer))
    assert watch.watch_run(CoordinatorClient(http, "http://zelda"), "m1", as_json=False) == "finished"


def test_the_live_line_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    news = [("progress", PROGRESS | {"doing": "Epoch 1: 4 of 8 segments wait for their judges."})] * 2
    text = "".join(f"event: {kind}\ndata: {json.dumps(document)}\n\n" for kind, document in [*news, ("run", FINISHED)])
    stream = httpx.Response(200, headers=STREAM, text=text)
    http = httpx.Client(base_url="http://zelda", transport=httpx.MockTransport(lambda request: stream))
    with os.fdopen(terminal, "w", encoding="utf-8") as shown:
        monkeypatch.setattr(sys, "stderr", shown)
        assert watch.watch_run(CoordinatorClient(http, "http://zelda"), "m1", as_json=False) == "finished"
        written = b""
        while not written.endswith(b"m1 is finished.\r\n"):  # a terminal hands it on in pieces
            written += os.read(ours, 10_000)
    os.close(ours)
    lines = written.decode().partition("\r\n")[0].split("\r\x1b[2K")
    assert lines == ["", *["epoch 2/3 | 500/1000 steps | - | segments 4 recorded, 3 ju…"] * 2]
    assert len(lines[1]) == 59  # a character in the last column would begin another line


def test_missing_progress_values_are_dashes() -> None:
    segments = "segments 4 recorded, 3 judged, 1 left | 9 votes"
    assert format_epoch(PROGRESS["epoch"], PROGRESS["epochs_planned"]) == "2/3"  # `zelda run list` counts the same way
    assert (
        describe_progress(PROGRESS) == f"epoch 2/3 | 500/1000 steps | - | {segments} | rm accuracy - | eta 1 h 02 min"
    )
    assert [format_duration(seconds) for seconds in (None, 59.9, 61)] == ["-", "0:59 min", "1:01 min"]
