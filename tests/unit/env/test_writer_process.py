"""The writer process of a recording: it runs when a core is idle, is replaced where none ever is, and may die."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from services.trainer.env import outbox
from services.trainer.env.buffers import BufferPool
from services.trainer.env.clerk import MOST, WRITER
from services.trainer.env.config import EnvConfig
from services.trainer.env.outbox import Outbox, Written
from services.trainer.env.recording import Recorder
from services.trainer.env.vector import ZeldaVectorEnv
from shared.config.settings import StoreSettings
from tests.unit.env.every_segment import every_segment, parcel_of

STEP_S = 0.002  # twenty segments a second, which one writer easily makes


def _writer(besides: int = 0) -> int:
    """The writer process of this test's recording. It has no command line for a moment after its start.

    One that was killed is there until it may run, which on a busy machine an idle process may not soon: `besides` it.
    """
    deadline = time.monotonic() + 5
    while not (found := {int(one.name) for one in Path("/proc").glob("[0-9]*") if _is_writer(one)} - {besides}):
        assert time.monotonic() < deadline, "no writer runs"
    return found.pop()


def _is_writer(process: Path) -> bool:
    try:
        ours = f"PPid:\t{os.getpid()}\n" in (process / "status").read_text()
        return ours and WRITER in (process / "cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@dataclass
class Play:
    """A game that is played until enough of its segments are in the store."""

    vector: ZeldaVectorEnv
    recorder: Recorder
    written: list[Written] = field(default_factory=list)

    def until(self, enough: int) -> None:
        """Play on, for half a minute at most."""
        deadline = time.monotonic() + 30
        while len(self.written) < enough and time.monotonic() < deadline:
            self.vector.step(np.array([0]))
            time.sleep(STEP_S)
            self.written.extend(self.recorder.written())
        assert len(self.written) >= enough


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Short segments, so that there are many."""
    config = EnvConfig.of({"world": "garden", "segment_steps": 20})
    recorder = Recorder(config, every_segment(tmp_path, slots=256))
    vector = ZeldaVectorEnv(config, recorder=recorder)
    vector.reset()
    yield Play(vector, recorder)
    vector.close()


def test_a_writer_that_dies_is_started_again(play: Play) -> None:
    play.until(1)
    os.kill(_writer(), signal.SIGKILL)
    play.until(len(play.written) + 1)


def test_a_writer_without_idle_time_is_replaced_by_one_that_takes_its_share(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost of what the first one held. A stopped process is one that finds no idle time."""
    monkeypatch.setattr(outbox, "IDLE_S", 60.0)
    play.until(1)
    first = _writer()
    assert os.sched_getscheduler(first) == os.SCHED_IDLE
    os.kill(first, signal.SIGSTOP)
    monkeypatch.setattr(outbox, "IDLE_S", 1.0)
    play.until(len(play.written) + 30)
    assert os.sched_getscheduler(_writer(besides=first)) == os.SCHED_OTHER
    play.recorder.close()
    play.written.extend(play.recorder.written())
    assert play.recorder.dropped == 0
    numbers = sorted(one.segment[-4:] for one in play.written)
    assert numbers == [f"s{number:03d}" for number in range(len(numbers))]


def test_a_writer_of_which_too_much_is_asked_takes_its_share_at_once(tmp_path: Path) -> None:
    pool = BufferPool()
    box = Outbox(StoreSettings(url=f"file://{tmp_path}"), pool, slots=2)
    box.post(parcel_of(pool, 0))
    first = _writer()
    os.kill(first, signal.SIGSTOP)
    for number in range(1, MOST + 3):
        box.post(parcel_of(pool, number))
    assert _writer(besides=first)
    assert (len(box.waiting()), box.dropped) == (2, 1)
    box.close(patience_s=0.0)
