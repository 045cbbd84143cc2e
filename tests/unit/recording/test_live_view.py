"""The live picture is drawn only while someone watches, by one runner at a time, and changes no recording."""

import asyncio
import base64
import time
from pathlib import Path

import numpy as np
import pytest

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.env.vector import ZeldaVectorEnv
from services.trainer.recording import live_view
from services.trainer.recording.live_view import (
    TAKE_OVER_S,
    VIEWER_POLL_S,
    WATCHED_S,
    LiveFramePublisher,
    WatchedRecorder,
)
from services.trainer.recording.recorder import RunnerRecorder
from shared.contracts.driver import LiveFrame
from shared.errors import Transient
from shared.game.recording.png import SIGNATURE
from shared.game.recording.segment import read_segment
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.object_store import local_store
from tests.unit.recording.recording_settings import RUN, every_segment

CONFIG = EnvConfig.of({"world": "garden", "segment_steps": 30})


class NoRecording:
    """A recorder that needs no picture; it counts the steps that were made."""

    steps = 0

    def begin_episode(self, session: GameSession) -> None:
        """An episode has begun."""

    def needs_picture(self, step: int) -> bool:
        return False

    def add_step(self, session: GameSession, result: object) -> None:
        self.steps += 1


class Stage:
    """Runners that share a store and a clock, viewers, and one game."""

    def __init__(self, folder: Path) -> None:
        self.now, self.marks, self.store = 0.0, 0, MemoryStore()
        self.folder = folder

    def live(self, runner: int) -> LiveFramePublisher:
        """The live view of one runner."""
        return LiveFramePublisher(self.store, every_segment(self.folder), runner, lambda: self.now)

    async def watch(self) -> None:
        """Renew the mark, as the coordinator does for a page."""
        self.marks += 1
        await self.store.put(keys.live_mark(RUN), str(self.marks).encode())

    async def frame(self) -> LiveFrame | None:
        """The frame in the store."""
        key = keys.live_frame(RUN)
        return LiveFrame.from_bytes(await self.store.get(key)) if await self.store.exists(key) else None

    async def watch_once(self, session: GameSession, *views: LiveFramePublisher) -> int | None:
        """Watch for the time of one look; return the runner whose game is shown."""
        await self.watch()
        await self.turns(*views, seconds=VIEWER_POLL_S, session=session)
        frame = await self.frame()
        return None if frame is None else frame.runner

    async def turns(self, *views: LiveFramePublisher, seconds: float, session: GameSession | None = None) -> None:
        """Let time pass in steps of a look; a game that is wanted makes a drawn step."""
        for _ in range(round(seconds / VIEWER_POLL_S)):
            self.now += VIEWER_POLL_S
            for view in views:
                await view.publish_if_watched()
                if view.wanted and session is not None:
                    view.take(session)


def game() -> GameSession:
    """A started game."""
    session = GameSession(CONFIG)
    session.reset()
    return session


async def test_nothing_is_drawn_while_no_one_watches(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    await stage.watch()  # of a viewer who left long ago
    view = stage.live(1)
    await stage.turns(view, seconds=60)
    assert not view.wanted
    assert await stage.frame() is None


async def test_a_viewer_sees_the_game_until_the_mark_grows_old(tmp_path: Path) -> None:
    stage, session = Stage(tmp_path), game()
    view = stage.live(1)
    await stage.turns(view, seconds=VIEWER_POLL_S)
    await stage.watch()
    await stage.turns(view, seconds=2 * VIEWER_POLL_S, session=session)
    frame = await stage.frame()
    assert frame is not None
    assert base64.b64decode(frame.png).startswith(SIGNATURE)
    assert (frame.room, frame.runner, frame.step) == (session.state.scene.room, 1, 0)
    assert [one.name for one in frame.milestones] == [one.name for one in session.game.milestones]
    await stage.turns(view, seconds=WATCHED_S + VIEWER_POLL_S, session=session)
    assert not view.wanted
    await stage.turns(view, seconds=VIEWER_POLL_S)
    assert not view.wanted, "nor does it ask for another picture"
    session.close()


async def test_another_runner_takes_over_within_ten_seconds(tmp_path: Path) -> None:
    stage, session = Stage(tmp_path), game()
    first, second, fourth = stage.live(1), stage.live(2), stage.live(4)
    await stage.turns(first, second, fourth, seconds=VIEWER_POLL_S)
    shown = [await stage.watch_once(session, first, second, fourth) for _ in range(4)]
    assert shown[-1] == 1
    waited = VIEWER_POLL_S
    while await stage.watch_once(session, second, fourth) == 1:  # the first runner has died
        waited += VIEWER_POLL_S
    assert TAKE_OVER_S <= waited <= 10
    # It comes back and leaves the game to the runner that shows it.
    shown = [await stage.watch_once(session, first, second, fourth) for _ in range(6)]
    assert shown == [2] * 6
    session.close()


async def test_the_order_of_the_runners_decides_who_shows_its_game(tmp_path: Path) -> None:
    """Not who looks first: a lower runner is waited for, at the beginning and when the present one has died."""
    stage, session = Stage(tmp_path), game()
    first, second, fourth = stage.live(1), stage.live(2), stage.live(4)
    await stage.turns(fourth, second, first, seconds=VIEWER_POLL_S)
    shown = [await stage.watch_once(session, fourth, second, first) for _ in range(3)]
    assert shown[-1] == 1
    while await stage.watch_once(session, fourth, second) == 1:  # the first runner has died
        pass
    shown = [await stage.watch_once(session, fourth, second) for _ in range(3)]
    assert shown == [2] * 3
    session.close()


async def test_a_runner_that_was_away_stops_showing_its_game(tmp_path: Path) -> None:
    """It showed its game before, and has not seen yet that another one took over."""
    stage, session = Stage(tmp_path), game()
    first, second = stage.live(1), stage.live(2)
    await stage.turns(first, second, seconds=VIEWER_POLL_S)
    shown = [await stage.watch_once(session, first, second) for _ in range(3)]
    assert shown[-1] == 1
    while await stage.watch_once(session, second) == 1:
        pass
    await stage.watch_once(session, second, first)
    assert [await stage.watch_once(session, second, first) for _ in range(4)] == [2] * 4
    session.close()


async def test_a_store_that_fails_costs_pictures_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_view, "VIEWER_POLL_S", 0.0)
    looked = asyncio.Event()

    class FailsTwice(MemoryStore):
        calls = 0

        async def get(self, key: str, digest: str | None = None) -> bytes:
            self.calls += 1
            if self.calls <= 2:
                raise Transient("the store is away")
            if self.calls > 9:
                looked.set()
            return await super().get(key, digest)

    view = LiveFramePublisher(FailsTwice(), every_segment(tmp_path), 1)
    running = asyncio.ensure_future(view.run())
    await asyncio.wait({running, waiting := asyncio.ensure_future(looked.wait())}, return_when=asyncio.FIRST_COMPLETED)
    assert looked.is_set()
    assert not running.done()
    for task in (running, waiting):
        task.cancel()


def test_a_drawn_step_is_recorded_and_shown_once(tmp_path: Path) -> None:
    view = LiveFramePublisher(MemoryStore(), every_segment(tmp_path), 1)
    inner = NoRecording()
    recorder = WatchedRecorder(inner, view)
    session = GameSession(CONFIG, recording=recorder)
    session.reset()
    assert not recorder.needs_picture(1)
    view.wanted = True
    assert recorder.needs_picture(1)
    for _ in range(3):
        session.step(1)
    assert inner.steps == 3
    assert not view.wanted, "one step is drawn for one picture"
    session.close()


def play(folder: Path, watched: bool) -> dict[str, bytes]:
    """The archives of a recorded walk; with `watched`, someone watches all the time."""
    recorder = RunnerRecorder(CONFIG, every_segment(folder))
    env = ZeldaVectorEnv(CONFIG, recorder=recorder)
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    for _ in range(130):
        recorder._live.wanted = watched
        env.step(rng.integers(1, 7, 1))
    env.close()
    store = local_store(folder)

    async def read() -> dict[str, bytes]:
        entries = await store.list(keys.segments_prefix(RUN))
        return {entry.key: await store.get(entry.key) for entry in entries if entry.key.endswith(".zip")}

    return asyncio.run(read())


def test_watching_changes_no_recorded_picture(tmp_path: Path) -> None:
    alone, watched = play(tmp_path / "alone", False), play(tmp_path / "watched", True)
    assert alone.keys() == watched.keys()
    for key, raw in alone.items():
        one, other = read_segment(raw), read_segment(watched[key])
        assert (one.frames, one.states) == (other.frames, other.states)


def test_a_recorder_shows_its_first_environment_to_a_viewer(tmp_path: Path) -> None:
    store = local_store(tmp_path)
    recorder = RunnerRecorder(CONFIG, every_segment(tmp_path))
    env = ZeldaVectorEnv(CONFIG, recorder=recorder)
    env.reset(seed=1)
    deadline, marks = time.monotonic() + 30, 0
    while not asyncio.run(store.exists(keys.live_frame(RUN))) and time.monotonic() < deadline:
        marks += 1
        asyncio.run(store.put(keys.live_mark(RUN), str(marks).encode()))
        for _ in range(50):
            env.step(np.ones(1, np.int64))
        time.sleep(0.1)
    env.close()
    frame = LiveFrame.from_bytes(asyncio.run(store.get(keys.live_frame(RUN))))
    assert (frame.epoch, frame.runner, frame.episode) == (3, 0, "e0003-r00-v00-0000")
    assert frame.step > 0
