"""`zelda policy evaluate` plays in several processes: a signal ends all of them, in seconds and without a traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.errors import INTERRUPTED
from cli.stack.port_owner import family
from tests.unit.cli.terminal import in_a_terminal

ROOT = Path(__file__).parents[3]
POLICY = "docs/results/policies/vale-314.npz"
LONG = ("--steps", "1000000", "--episodes", "4")  # an episode of minutes: no worker ends by itself
STARTED_S = 60.0  # for the start of this command on a busy machine
ENDED_S = 15.0


def alive(session: int) -> list[int]:
    """The processes of a session that still run."""
    found = subprocess.run(["ps", "-o", "pid=,stat=", "-s", str(session)], capture_output=True, text=True, check=False)
    rows = [line.split() for line in found.stdout.splitlines()]
    return [int(pid) for pid, state in rows if not state.startswith("Z")]


def uses_core(pid: int) -> bool:
    """Whether a process has used more than a second of a core: a worker that plays."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 1.0


@pytest.mark.parametrize(("number", "to_all"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, False)])
def test_a_signal_ends_all_processes_of_an_evaluation(number: signal.Signals, to_all: bool) -> None:
    command = [sys.executable, "-m", "cli", "policy", "evaluate", POLICY, *LONG]
    with subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=in_a_terminal
    ) as evaluation:
        try:
            deadline = time.monotonic() + STARTED_S
            while not any(uses_core(pid) for pid in family(evaluation.pid) if pid != evaluation.pid):
                assert time.monotonic() < deadline, "no worker plays"
                time.sleep(0.2)
            (os.killpg if to_all else os.kill)(evaluation.pid, number)  # ctrl-C reaches the whole group
            assert evaluation.wait(ENDED_S) == INTERRUPTED
            assert evaluation.stderr is not None
            assert evaluation.stderr.read() == ""
            deadline = time.monotonic() + ENDED_S
            while left := alive(evaluation.pid):
                assert time.monotonic() < deadline, left
                time.sleep(0.2)
        finally:
            for pid in alive(evaluation.pid):
                os.kill(pid, signal.SIGKILL)
