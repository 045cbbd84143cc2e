"""A stopped study leaves no trial running, and only one study runs in a folder."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.__main__ import exit_code_of
from cli.errors import CONFLICT, INTERRUPTED, CliError
from cli.stack.lock import locked_directory
from cli.stack.signals import interrupt_on_signals
from cli.trial_processes import run_trials
from tests.child_processes import descendants_running
from tests.unit.cli.terminal import in_a_terminal
from tests.unit.cli.test_processes import alive
from tests.unit.studies.invented import plan

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads children from /proc")
PLAN = plan(arms=("none",), seeds=(0,))
OPTIONS = ("--seeds", "1", "--arms", "none", "--jobs", "1", "--out")


@contextmanager
def running_study(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Run a study; yield it with its first trial."""
    command = [sys.executable, "-m", "cli", "study", "garden", *OPTIONS, str(folder)]
    study = subprocess.Popen(command, preexec_fn=in_a_terminal)
    try:
        end = time.monotonic() + 60
        while not (found := descendants_running("studies.trial", study.pid)):
            assert time.monotonic() < end
            time.sleep(0.02)
        yield study, found[0]
    finally:
        study.kill()
        study.wait()


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_study_after_its_trials(number: signal.Signals, tmp_path: Path) -> None:
    with running_study(tmp_path) as (study, trial):
        study.send_signal(number)
        assert study.wait(30) == INTERRUPTED
        assert not alive(trial)


def test_a_signal_during_the_start_of_a_trial_stops_that_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def interrupted(*_: object) -> "subprocess.Popen[bytes]":
        started.append(subprocess.Popen(["sleep", "60"], start_new_session=True))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    monkeypatch.setattr("cli.trial_processes._start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_trials(tmp_path, PLAN, jobs=1)
    left = started[0].poll() is None
    started[0].kill()
    started[0].wait()
    assert not left


@linux
def test_trials_stop_when_the_study_is_killed(tmp_path: Path) -> None:
    with running_study(tmp_path) as (study, trial):
        study.kill()
        end = time.monotonic() + 10
        while alive(trial):
            assert time.monotonic() < end
            time.sleep(0.02)


def test_a_second_study_in_the_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked_directory(tmp_path, "study", "wait for it"):
        assert exit_code_of(["study", "garden", *OPTIONS, str(tmp_path)]) == CONFLICT
    assert f"A study already runs in {tmp_path} (process {os.getpid()}): wait for it" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["lock"]


@linux
def test_a_killed_trial_is_reported_with_its_probable_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def killed(*_: object) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(["sh", "-c", "kill -9 $$"], start_new_session=True)

    monkeypatch.setattr("cli.trial_processes._start", killed)
    with pytest.raises(CliError, match=r"1 of 1 trials failed \(none-garden-0\)"):
        run_trials(tmp_path, PLAN, jobs=1)
    expected = "none-garden-0: killed (signal 9), probably out of memory: use fewer --jobs; 0 left"
    assert expected in capsys.readouterr().err


def test_a_closed_terminal_does_not_stop_a_command_under_nohup() -> None:
    on_hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    on_termination = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with interrupt_on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt), interrupt_on_signals():
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, on_hangup)
        signal.signal(signal.SIGTERM, on_termination)
