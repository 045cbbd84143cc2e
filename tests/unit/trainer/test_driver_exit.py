"""When a driver starts and why it exits: it obeys the store and its own clock."""

import asyncio
import os
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.trainer.documents import Heartbeat
from services.trainer.driver import driver as driver_module
from services.trainer.driver import heartbeat as heartbeat_module
from services.trainer.driver.__main__ import main
from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.driver import Driver
from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.heartbeat import DriverProgress
from services.trainer.settings import DriverGroup
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.trainer.run_fixtures import RUN, beat, enter, order, run_in


def no_game(*_: Any) -> Any:
    raise AssertionError("nothing was ordered")


def driver(store: MemoryStore, parent: int | None = None) -> Driver:
    return Driver(DriverStore(BlockingStore(store), RUN, "d2"), DriverGroup(idle_s=1), no_game, parent)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    monkeypatch.setattr(driver_module, "CLAIM_S", 0.01)
    made = MemoryStore()
    asyncio.run(run_in(made))
    return made


@pytest.mark.parametrize("name", ["", "two words", "x" * 61])
def test_a_driver_with_an_invalid_name_does_not_start(name: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--run", RUN, "--name", name])
    with pytest.raises(ValueError, match="is not a DriverName: use 1-60 lower-case letters"):
        DriverStore(BlockingStore(MemoryStore()), RUN, name)


def lives_elsewhere(store: MemoryStore, ahead_s: float = 0.0) -> Heartbeat:
    """A driver on another host, whose clock is ahead, has just given a sign of life."""
    now = datetime.now(UTC) + timedelta(seconds=ahead_s)
    former = beat("d1", host="elsewhere", time=now)
    asyncio.run(store.put(keys.driver_heartbeat(RUN), former.to_bytes()))
    return former


def newest_beat(store: MemoryStore) -> Heartbeat:
    return Heartbeat.from_bytes(asyncio.run(store.get(keys.driver_heartbeat(RUN))))


def test_a_heartbeat_from_a_clock_ahead_does_not_delay_a_driver(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "STALE_S", 0.1)
    lives_elsewhere(store, ahead_s=3600)
    second = threading.Thread(target=driver(store).run, args=(None,), daemon=True)
    second.start()
    second.join(10)
    assert not second.is_alive()
    assert newest_beat(store).driver == "d2"


def test_a_driver_begins_when_its_run_has_only_waited(store: MemoryStore) -> None:
    waits = beat("none", host="elsewhere", state="waiting", time=datetime.now(UTC))
    asyncio.run(store.put(keys.driver_heartbeat(RUN), waits.to_bytes()))
    driver(store)._claim(None)  # returns


def test_a_driver_whose_clock_is_behind_but_that_beats_is_waited_for(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "STALE_S", 0.2)
    second = driver(store)
    waiting = threading.Thread(target=second._claim, args=(None,), daemon=True)
    lives_elsewhere(store, ahead_s=-3600)
    waiting.start()
    for _ in range(10):
        time.sleep(0.05)
        lives_elsewhere(store, ahead_s=-3600)
    assert waiting.is_alive()
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_waiting_driver_obeys_sigterm_and_overwrites_no_heartbeat(store: MemoryStore) -> None:
    former = lives_elsewhere(store)
    second = driver(store)
    waiting = threading.Thread(target=second.run, args=(None,), daemon=True)
    waiting.start()
    second.heartbeat.request_exit("signal")
    waiting.join(10)
    assert not waiting.is_alive()
    assert newest_beat(store) == former


def test_a_waiting_driver_exits_when_its_service_is_gone(store: MemoryStore) -> None:
    lives_elsewhere(store)
    orphan = driver(store, parent=os.getpid())  # which is not our parent, as if it had died
    waiting = threading.Thread(target=orphan.run, args=(None,), daemon=True)
    waiting.start()
    waiting.join(10)
    assert orphan.heartbeat.exit_reason == "orphaned"


def test_a_late_driver_confirms_the_stop_that_it_saw_and_not_the_next_one(store: MemoryStore) -> None:
    asyncio.run(order(store))
    late = driver(store)
    stopping = asyncio.run(enter(store, asyncio.run(RunRecords(store).latest(RUN)), "stopping"))
    late.heartbeat._beat()
    again = stopping.model_copy(update={"attempt": 2})
    asyncio.run(enter(store, again, "running"))
    late.heartbeat._beat()
    late._confirm_stop()
    assert asyncio.run(store.exists(keys.driver_stopped(RUN, 1)))
    assert not asyncio.run(store.exists(keys.driver_stopped(RUN, 2)))


def test_a_driver_whose_run_was_deleted_leaves_nothing_of_it(store: MemoryStore) -> None:
    alone = driver(store)
    alone.heartbeat._beat()
    delete_run(store)
    alone.heartbeat._beat()
    assert alone.heartbeat.exit_reason == "deleted"
    assert asyncio.run(store.list(keys.run_prefix(RUN))) == []


def test_concurrent_updates_of_the_progress_are_kept(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = driver(store).heartbeat
    training = threading.Thread(target=lambda: busy.update(state="training"))

    def slow(status: DriverProgress, **changes: Any) -> DriverProgress:
        changed = replace(status, **changes)
        if "attempt" in changes:
            training.start()
            training.join(0.5)
        return changed

    monkeypatch.setattr(heartbeat_module, "replace", slow)
    busy._apply_record(asyncio.run(RunRecords(store).latest(RUN)).model_copy(update={"attempt": 2}))
    training.join(10)
    reported = busy._heartbeat()
    assert (reported.state, reported.attempt) == ("training", 2)


def delete_run(store: MemoryStore) -> None:
    for entry in asyncio.run(store.list(keys.run_prefix(RUN))):
        asyncio.run(store.delete(entry.key))
