"""Runs the trials of a study, each in its own process, and stops all of them when the command ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from cli.console import print_status
from cli.errors import FAILED, CliError
from cli.stack.signals import defer_signals, die_with_parent
from studies.plan import StudyPlan, Trial

POLL_S: Final = 1.0
GRACE_S: Final = 10.0  # a stopped trial saves nothing: it resumes from its last checkpoint


def run_trials(
    folder: Path,
    plan: StudyPlan,
    jobs: int,
    done: Collection[Trial] = (),
    finished: Callable[[Trial], None] = lambda trial: None,
) -> None:
    """Run all trials without a result, `jobs` at a time; CliError after the last one if any failed.

    `done` are trials whose results are known from elsewhere; `finished` is called after each one that succeeds.
    """
    results = {trial: plan.result_file(folder, trial) for trial in plan.trials() if trial not in done}
    waiting = [trial for trial, file in results.items() if not file.exists()]
    total, failed = len(waiting), []
    running: dict[Trial, subprocess.Popen[bytes]] = {}
    if waiting:
        print_status(f"Training {total} trials, {min(jobs, total)} at a time; each writes to {folder / 'logs'}.")
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                with defer_signals():
                    trial = waiting.pop(0)
                    running[trial] = _start(folder, trial)
                print_status(f"{trial.name}: started")
            time.sleep(POLL_S)
            for trial in [trial for trial, process in running.items() if process.poll() is not None]:
                code = running.pop(trial).returncode
                failed += [trial] if code else []
                print_status(f"{trial.name}: {describe_exit(code)}; {len(waiting) + len(running)} left")
                if not code:
                    finished(trial)
    finally:
        _stop_all(running.values())
    if failed:
        names = ", ".join(trial.name for trial in failed)
        raise CliError(
            FAILED,
            f"{len(failed)} of {total} trials failed ({names}): see {folder / 'logs'}, then run the command again.",
        )


def describe_exit(code: int) -> str:
    """Describe how a trial ended. A killed trial cannot write the reason to its log."""
    if code == -signal.SIGKILL:
        return "killed (signal 9), probably out of memory: use fewer --jobs"
    if code < 0:
        return f"stopped by signal {-code} ({signal.strsignal(-code)})"
    return "failed" if code else "done"


def _start(folder: Path, trial: Trial) -> subprocess.Popen[bytes]:
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    # One thread per trial: the spinning threads of OpenMP would take the cores from the other trials.
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    with (logs / f"{trial.name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "studies.trial", str(folder), trial.arm, trial.world, str(trial.seed)],
            stdout=log,
            stderr=log,
            env=environ,
            start_new_session=True,  # ctrl-C reaches this process alone, which stops the trials
            preexec_fn=die_with_parent,
        )


def _stop_all(trials: Collection["subprocess.Popen[bytes]"]) -> None:
    """Send SIGTERM, then kill the remaining process groups: a later study must find no trial at work in its stores."""
    deadline = time.monotonic() + GRACE_S
    try:
        for trial in trials:
            trial.terminate()
        for trial in trials:
            with suppress(subprocess.TimeoutExpired):
                trial.wait(max(0.0, deadline - time.monotonic()))
    finally:  # also after a second ctrl-C
        for trial in trials:
            with suppress(ProcessLookupError):
                os.killpg(trial.pid, signal.SIGKILL)
            trial.wait()
