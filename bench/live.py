"""What a live picture costs the game that it shows: `python bench/live.py [--quick]`.

CPU time of one frame, and of a step with and without a viewer in turn: of the playing thread, and of the process.
"""

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

from bench.harness.measure import Figures, arguments, report
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.env.vector import ZeldaVectorEnv
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.live_view import PICTURE_S, LiveFramePublisher
from services.trainer.recording.recorder import RunnerRecorder
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.object_store import local_store
from shared.store.port import Store

RUN = RunId("live")
WARM_UP_S, STEPS, ROUNDS = 6.0, 2_500, 6  # the view begins within two looks for viewers


class Viewer:
    """A page that asks for the live picture all the time."""

    def __init__(self, store: Store) -> None:
        self._store, self._left = store, threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Stop asking."""
        self._left.set()
        self._thread.join()

    def _ask(self) -> None:
        number = 0
        while not self._left.wait(1.0):
            number += 1
            asyncio.run(self._store.put(keys.live_mark(RUN), str(number).encode()))


def measure(watched: bool, steps: int) -> tuple[float, float]:
    """Microseconds of CPU time a step: of the playing thread, and of the process."""
    with tempfile.TemporaryDirectory() as folder:
        store = local_store(Path(folder))
        settings = RecordingConfig(run=RUN, epoch=0, store=StoreSettings(url=f"file://{folder}"))
        config = EnvConfig.of({"world": "vale"})
        env = ZeldaVectorEnv(config, recorder=RunnerRecorder(config, settings))
        env.reset(seed=1)
        viewer = Viewer(store) if watched else None
        rng = np.random.default_rng(0)
        until = time.monotonic() + WARM_UP_S
        while time.monotonic() < until:
            env.step(rng.integers(0, 7, 1))
        thread, process = time.thread_time(), time.process_time()
        for _ in range(steps):
            env.step(rng.integers(0, 7, 1))
        costs = (time.thread_time() - thread) / steps * 1e6, (time.process_time() - process) / steps * 1e6
        if viewer is not None:
            viewer.leave()
        env.close()
        if watched != asyncio.run(store.exists(keys.live_frame(RUN))):
            raise RuntimeError("the live picture was not shown, or shown without a viewer: nothing was measured")
        return costs


def frame_cost(times: int = 200) -> float:
    """Milliseconds of CPU time that one frame adds: a drawn step instead of one that is not, and the frame."""
    session = GameSession(EnvConfig.of({"world": "vale"}))
    session.reset()
    view = LiveFramePublisher(MemoryStore(), RecordingConfig(run=RUN, epoch=0, store=StoreSettings(url="memory://")), 1)
    spent = {True: 0.0, False: 0.0}
    for turn in range(2 * times):
        drawn = turn % 2 == 0
        began = time.process_time()
        session.emulator.step(0, session.config.frame_skip, drawn)
        if drawn:
            view.take(session)
            view.frame()
        spent[drawn] += time.process_time() - began
    session.close()
    return (spent[True] - spent[False]) / times * 1_000


def main() -> None:
    """Measure in turn and report."""
    options = arguments(__doc__)
    costs: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for turn in range(2 if options.quick else ROUNDS):
        for watched in (False, True) if turn % 2 == 0 else (True, False):
            costs[watched].append(measure(watched, STEPS))
    frame = frame_cost()
    rows = [("one frame", f"{frame:.2f} ms: drawing a step, copying, encoding, without the store")]
    figures: Figures = {"frame_ms": frame, "share_of_a_core": frame / 1e3 / PICTURE_S}
    for place, name in enumerate(("playing_thread", "process")):
        alone, shown = (statistics.median(one[place] for one in costs[watched]) for watched in (False, True))
        rows.append((name.replace("_", " "), f"{alone:.0f} us a step alone, {shown:.0f} us watched"))
        figures |= {f"{name}_alone_us": alone, f"{name}_watched_us": shown, f"{name}_cost": shown / alone - 1}
    report("Live picture", rows, figures, options.json)


if __name__ == "__main__":
    main()
