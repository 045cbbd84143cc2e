"""Watching a run: its progress, its end, and interruptions of the stream."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from cli import errors, watch
from cli.client import CoordinatorClient
from cli.commands.run import watch_to_exit_code
from cli.console import done_epochs, format_duration
from cli.errors import CliError
from cli.watch import describe_progress, parse_events

STREAM = {"content-type": "text/event-stream"}
FINISHED = {"state": "finished", "reason": None}
PROGRESS: dict[str, Any] = {
    "state": "running",
    "doing": "Epoch 1 is training.",
    "stage": "playing",
    "stage_share": 0.5,
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
    "eta_at_least": False,
}


def test_server_sent_events_are_parsed_without_comments() -> None:
    lines = iter([": keep-alive", "", "event: run", 'data: {"state": "running"}', ""])
    assert list(parse_events(lines)) == [("run", {"state": "running"})]


@pytest.mark.parametrize(
    ("state", "reason", "code", "expected", "then"),
    [
        ("finished", None, errors.OK, "m1 is finished.", "zelda report m1"),
        ("stopped", None, errors.OK, "m1 is stopped.", "zelda run resume m1"),
        ("failed", "The driver refused it.", errors.FAILED, "m1 is failed: The driver refused it.", "zelda run logs"),
    ],
)
def test_the_end_of_a_watched_run_is_reported(
    state: str, reason: str | None, code: int, expected: str, then: str, capsys: pytest.CaptureFixture[str]
) -> None:
    news = f"event: run\ndata: {json.dumps({'state': state, 'reason': reason})}\n\n"
    stream = httpx.Response(200, headers=STREAM, text=news)
    http = httpx.Client(base_url="http://zelda", transport=httpx.MockTransport(lambda request: stream))
    assert watch_to_exit_code(CoordinatorClient(http, "http://zelda"), "m1", as_json=False) == code
    end, following = capsys.readouterr().err.splitlines()
    assert end == expected
    assert following.startswith("Next:  ")
    assert then in following


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


class BrokenStream(httpx.SyncByteStream):
    """A stream that breaks off after one line."""

    def __iter__(self) -> Iterator[bytes]:
        yield b": keep-alive\n\n"
        raise httpx.ReadError("reset by peer")


@pytest.mark.parametrize("broken", [httpx.ConnectError("refused"), BrokenStream()])
def test_a_broken_stream_is_an_error_of_the_command_line(broken: httpx.ConnectError | BrokenStream) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if isinstance(broken, Exception):
            raise broken
        return httpx.Response(200, headers=STREAM, stream=broken)

    client = CoordinatorClient(httpx.Client(base_url="http://z", transport=httpx.MockTransport(answer)), "http://z")
    sentence = r"http://z does not answer \((refused|reset by peer)\): check the address"
    with pytest.raises(CliError, match=sentence) as problem, client.stream("/runs/m1/events") as lines:
        list(lines)
    assert problem.value.code == errors.UNREACHABLE


def test_a_watch_without_an_answer_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(watch, "RECONNECT_PAUSE_S", 0.0)
    monkeypatch.setattr(watch, "NO_ANSWER_TIMEOUT_S", 0.0)
    client = CoordinatorClient(httpx.Client(base_url="http://z", transport=httpx.MockTransport(answer)), "http://z")
    with pytest.raises(CliError, match=r"No answer for 0 s: http://z does not answer \(refused\): check the address"):
        watch.watch_run(client, "m1", as_json=False)


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


def test_missing_progress_values_are_left_out() -> None:
    assert (
        describe_progress(PROGRESS)
        == "epoch 1 (1 of 3 epochs done) | playing | 500 of 1,000 steps | about 1 h 02 min left"
    )
    unknown = {"eta_s": None, "stage": None, "doing": "Epoch 1 starts.", "epochs_planned": None}
    assert describe_progress(PROGRESS | unknown) == "epoch 1 (1 of many epochs done) | Epoch 1 starts."


def test_a_plain_log_says_how_far_an_exploration_is() -> None:
    starting = PROGRESS | {"epoch": 0, "stage": "starting", "stage_share": 0.37}
    assert " | starting | exploring without a network, 37%" in describe_progress(starting)
    assert "exploring" not in describe_progress(starting | {"stage_share": None})


@pytest.mark.parametrize(("seconds", "text"), [(None, "-"), (59.9, "59 s"), (61, "1 min 01 s"), (3725, "1 h 02 min")])
def test_durations_are_read_at_a_glance(seconds: float | None, text: str) -> None:
    assert format_duration(seconds) == text


def test_a_finished_run_counts_its_last_epoch() -> None:
    assert [done_epochs(2, 3, "running"), done_epochs(2, 3, "finished")] == ["2 of 3", "3 of 3"]
