"""A study that is ended leaves no trial running, however it is ended, and two do not run in one folder."""

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
from shared.contracts.run import RunConfig
from studies.plan import StudyPlan
from tests.unit.cli.test_processes import alive

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads children from /proc")
PLAN = StudyPlan(arms=("none",), seeds=1, run=RunConfig(world="garden"))
OPTIONS = ("--seeds", "1", "--arms", "none", "--jobs", "1", "--out")


def trials(parent: int) -> list[int]:
    """Its children that run a trial already."""
    found = map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return [pid for pid in found if b"studies.trial" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def _in_a_terminal() -> None:
    """Also where the tests themselves run under `nohup`, which a study would obey."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def playing(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """A study whose first trial has begun, and that trial."""
    command = [sys.executable, "-m", "cli", "study", "garden", *OPTIONS, str(folder)]
    study = subprocess.Popen(command, preexec_fn=_in_a_terminal)
    try:
        end = time.monotonic() + 60
        while not (found := trials(study.pid)):
            assert time.monotonic() < end
            time.sleep(0.02)
        yield study, found[0]
    finally:
        study.kill()
        study.wait()


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_study_that_is_told_to_end_waits_for_its_trials(number: signal.Signals, tmp_path: Path) -> None:
    with playing(tmp_path) as (study, trial):
        study.send_signal(number)
        assert study.wait(30) == INTERRUPTED
        assert not alive(trial)


def test_a_trial_that_is_just_being_started_is_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_trials_end_even_if_the_study_is_killed(tmp_path: Path) -> None:
    with playing(tmp_path) as (study, trial):
        study.kill()
        end = time.monotonic() + 10
        while alive(trial):
            assert time.monotonic() < end
            time.sleep(0.02)


def test_a_second_study_in_the_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked_directory(tmp_path, "study", "wait for it"):
        assert exit_code_of(["study", "garden", *OPTIONS, str(tmp_path)]) == CONFLICT
    assert f"A study runs in {tmp_path} already (process {os.getpid()}): wait for it" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["lock"]


@linux
def test_a_trial_that_is_killed_is_told_with_the_likely_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def killed(*_: object) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(["sh", "-c", "kill -9 $$"], start_new_session=True)

    monkeypatch.setattr("cli.trial_processes._start", killed)
    with pytest.raises(CliError, match=r"1 of 1 trials failed \(none-0\)"):
        run_trials(tmp_path, PLAN, jobs=1)
    told = "none, seed 0: killed (signal 9), most likely for its memory: take fewer --jobs; 0 left"
    assert told in capsys.readouterr().err


def test_a_closed_terminal_does_not_end_what_was_started_to_outlive_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupt_on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt), interrupt_on_signals():
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
