"""The driver's access to the store: a run continues after lost, damaged or half-written objects."""

import asyncio
import json

import pytest

from services.trainer.documents import latest_checkpoint_key
from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.driver_store import DriverStore
from shared.contracts.base import sha256
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.trainer.run_fixtures import RUN, account, beat, segment


def driver_store(store: MemoryStore, driver: str = "d1") -> DriverStore:
    return DriverStore(BlockingStore(store), RUN, driver)


class Killed(RuntimeError):
    pass


class PointsNoMore(BlockingStore):
    """The store of a driver that is killed before it can point to its next checkpoint."""

    def put(self, key: str, data: bytes) -> str:
        if key == latest_checkpoint_key(RUN, 0):
            raise Killed
        return super().put(key, data)


def test_a_heartbeat_of_an_earlier_version_is_read() -> None:
    store = MemoryStore()
    now = beat("d0", steps=7)
    earlier = {**json.loads(now.to_bytes()), "epoch_steps": 2_048, "segments": 3}
    asyncio.run(store.put(keys.driver_heartbeat(RUN), json.dumps(earlier).encode()))
    assert driver_store(store).read_heartbeat() == now


def test_a_driver_killed_within_a_second_save_leaves_the_first_valid() -> None:
    store = MemoryStore()
    driver_store(store).save_checkpoint(b"periodic", 0, 2, 1024)
    with pytest.raises(Killed):
        DriverStore(PointsNoMore(store), RUN, "d1").save_checkpoint(b"final", 0, 2, 1024)
    assert driver_store(store, "d2").resume_checkpoint(0) == (sha256(b"periodic"), b"periodic")


def test_a_replaced_checkpoint_can_be_deleted_and_its_successor_stays() -> None:
    store = MemoryStore()
    driver = driver_store(store)
    former = driver.save_checkpoint(b"periodic", 0, 2, 1024)
    driver.save_checkpoint(b"final", 0, 2, 1024)
    driver.delete_checkpoint(former)
    assert driver.resume_checkpoint(0) == (sha256(b"final"), b"final")
    assert len(asyncio.run(store.list(keys.checkpoint_prefix(RUN, 0)))) == 2  # and its pointer


def test_an_epoch_without_its_own_checkpoint_restarts() -> None:
    store = MemoryStore()
    driver = driver_store(store)
    driver.delete_checkpoint(driver.save_checkpoint(b"of the first epoch", 0, 2, 1024))
    assert driver.resume_checkpoint(0) is None
    final = driver.save_checkpoint(b"final", 0, 4, 2048)
    asyncio.run(account(store, [], checkpoint=final))
    driver.delete_checkpoint(driver.save_checkpoint(b"of the second epoch", 1, 2, 1024))
    assert driver.resume_checkpoint(1) == (final.digest, b"final")
    damaged = driver.save_checkpoint(b"of the second epoch", 1, 2, 1024)
    asyncio.run(store.put(damaged.key, b"half of it"))
    assert driver.resume_checkpoint(1) == (final.digest, b"final")
    asyncio.run(store.put(latest_checkpoint_key(RUN, 1), b""))
    assert driver.resume_checkpoint(1) == (final.digest, b"final")


def test_foreign_objects_and_damaged_heartbeats_are_skipped() -> None:
    store = MemoryStore()
    ref = asyncio.run(segment(store, 1))
    asyncio.run(store.put(f"{keys.segments_prefix(RUN, 0)}notes/copy.zip", b"x"))
    asyncio.run(store.put(keys.driver_heartbeat(RUN), b"half of"))
    driver = driver_store(store)
    assert driver.recorded_episodes(0) == [ref.episode]
    assert driver.list_segments(0, {}) == [ref]
    assert driver.read_heartbeat() is None
