"""The live view of a run: stages, epochs and the remaining time, on a terminal of 80 columns."""

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from io import StringIO
from typing import Any

import httpx
import pytest
from rich.console import Console

from cli import errors, watch
from cli.client import CoordinatorClient
from cli.commands.run import watch_to_exit_code
from cli.console import print_epochs
from cli.live_view import STAGES, LiveView
from cli.runs.next_commands import Reach
from services.coordinator.domain import stages
from shared.contracts.progress import RunProgress
from tests.unit.cli.test_watch import FINISHED, PROGRESS, STREAM

EPOCH: dict[str, Any] = {
    "epoch": 0,
    "steps": 20480,
    "segments_judged": 44,
    "segments_recorded": 45,
    "reward_model_passed": False,
    "reward_model_accuracy": 0.81,
}


def picture(width: int, *updates: tuple[str, dict[str, Any]]) -> list[str]:
    """The lines that a terminal of this width shows after the updates."""
    view = LiveView("demo-20261123-041956", watch.HINT, Console(file=StringIO(), width=width))
    for kind, document in updates:
        view(kind, document)
    view.close()
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(view.render())
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_view_knows_the_stages_of_the_coordinator() -> None:
    assert STAGES == stages.STAGES


def test_every_figure_of_an_epoch_is_whole_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    figures = {"epoch": 299, "steps": 983_040, "steps_per_s": 1_234.5, "agreement": 0.97, "score_mean": 0.41}
    model = {"reward_model": "ab" * 32, "reward_model_epoch": 298, "reward_model_passed": False}
    row = EPOCH | figures | model | {"segments_judged": 200, "segments_recorded": 200}
    print_epochs("Epochs of demo-20261123-041956", [row])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)  # without bold
    lines = [line.rstrip() for line in plain.splitlines() if line.strip()]
    assert max(map(len, lines)) <= 80
    heads = ["epoch", "steps", "steps/s", "judged", "agree", "score", "shaped", "by", "accuracy", "model"]
    assert lines[1].split() == heads
    cells = ["299", "983,040", "1,234", "200/200", "0.97", "0.41", "epoch", "298", "0.81", "refused"]
    assert lines[-1].split() == cells


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_readable_in_a_narrow_terminal(width: int, stage: str) -> None:
    now = PROGRESS | {"stage": stage, "steps_per_s": 431.7}
    lines = picture(width, ("run", {"state": "running", "reason": None}), ("epoch", EPOCH), ("progress", now))
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines] == ["demo-20261123-041956", "epoch", "epoch", *STAGES, "ctrl-C"]
    assert "1 of 3 epochs done" in lines[0]
    if width == 80:
        assert lines[0].endswith("about 1 h 02 min left")
        assert lines[1] == "epoch 0  20,480 steps, 44 of 45 judged, model refused at 0.81"
        assert not any("…" in line for line in lines)


def test_the_current_stage_shows_its_figures_and_earlier_ones_are_done() -> None:
    now = PROGRESS | {"stage": "judging", "stage_share": None}
    lines = {line.split()[0]: line for line in picture(80, ("progress", now))}
    assert [name for name, line in lines.items() if line.endswith("done")] == ["starting", "playing", "evaluating"]
    assert lines["judging"].endswith("3 of 4 segments, 9 votes")


def test_a_lost_system_is_said_until_it_answers_again() -> None:
    view = LiveView("m1", watch.HINT, Console(file=StringIO()))
    view("progress", PROGRESS)
    view.show_outage("refused")
    assert view._footer() == "Retrying: refused"
    view("progress", PROGRESS)
    assert view._footer() == watch.HINT
    view.close()


def test_progress_of_an_ended_run_says_what_it_does() -> None:
    ended = PROGRESS | {"stage": None, "eta_s": None, "doing": "The run is finished."}
    assert picture(80, ("progress", ended))[-1] == "The run is finished."


def test_the_view_is_drawn_on_a_terminal_and_ends_with_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    monkeypatch.setenv("COLUMNS", "80")
    news = [("progress", PROGRESS), ("run", FINISHED)]
    text = "".join(f"event: {kind}\ndata: {json.dumps(document)}\n\n" for kind, document in news)
    stream = httpx.Response(200, headers=STREAM, text=text)
    http = httpx.Client(base_url="http://zelda", transport=httpx.MockTransport(lambda request: stream))
    with os.fdopen(terminal, "w", encoding="utf-8") as shown:
        monkeypatch.setattr(sys, "stderr", shown)
        assert watch.watch_run(CoordinatorClient(http, "http://zelda"), "m1", as_json=False) == "finished"
        written = b""
        while not written.endswith(b"m1 is finished.\r\n"):  # a terminal hands it on in pieces
            written += os.read(ours, 10_000)
    os.close(ours)
    assert b"500 of 1,000 steps" in written


def test_leaving_the_view_says_that_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(request: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    http = httpx.Client(base_url="http://zelda", transport=httpx.MockTransport(interrupted))
    code = watch_to_exit_code(
        CoordinatorClient(http, "http://zelda"), "m1", as_json=False, reach=Reach(" --url http://x")
    )
    assert code == errors.INTERRUPTED
    said = capsys.readouterr().err.splitlines()
    assert said == ["m1 continues.", "Next:  zelda run watch m1 --url http://x    zelda run stop m1 --url http://x"]


def test_the_progress_document_has_every_field_of_the_view() -> None:
    assert set(PROGRESS) <= set(RunProgress.model_fields)
