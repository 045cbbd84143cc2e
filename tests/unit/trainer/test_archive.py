"""What a driver finds in the store: whatever was lost or cut short there, the run goes on."""

import asyncio

import pytest

from services.trainer.control import latest_checkpoint
from services.trainer.rl.archive import Archive
from services.trainer.rl.bridge import BlockingStore
from shared.contracts.base import sha256
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.trainer.stage import RUN, account, segment


def archive(store: MemoryStore, driver: str = "d1") -> Archive:
    return Archive(BlockingStore(store), RUN, driver)


class Killed(RuntimeError):
    pass


class PointsNoMore(BlockingStore):
    """The store of a driver that is killed before it can point to its next checkpoint."""

    def put(self, key: str, data: bytes) -> str:
        if key == latest_checkpoint(RUN, 0):
            raise Killed
        return super().put(key, data)


def test_a_driver_killed_within_a_second_save_of_the_same_iteration_leaves_the_first_one_in_force() -> None:
    store = MemoryStore()
    archive(store).save(b"periodic", 0, 2, 1024)
    with pytest.raises(Killed):
        Archive(PointsNoMore(store), RUN, "d1").save(b"final", 0, 2, 1024)
    assert archive(store, "d2").resume_point(0) == (sha256(b"periodic"), b"periodic")


def test_a_replaced_checkpoint_can_be_forgotten_and_its_successor_stays() -> None:
    store = MemoryStore()
    driver = archive(store)
    former = driver.save(b"periodic", 0, 2, 1024)
    driver.save(b"final", 0, 2, 1024)
    driver.forget(former)
    assert driver.resume_point(0) == (sha256(b"final"), b"final")
    assert len(asyncio.run(store.list(keys.checkpoint_prefix(RUN, 0)))) == 2  # and its pointer


def test_an_epoch_whose_own_checkpoint_is_lost_begins_again() -> None:
    store = MemoryStore()
    driver = archive(store)
    driver.forget(driver.save(b"of the first epoch", 0, 2, 1024))
    assert driver.resume_point(0) is None
    final = driver.save(b"final", 0, 4, 2048)
    asyncio.run(account(store, [], checkpoint=final))
    driver.forget(driver.save(b"of the second epoch", 1, 2, 1024))
    assert driver.resume_point(1) == (final.digest, b"final")
    damaged = driver.save(b"of the second epoch", 1, 2, 1024)
    asyncio.run(store.put(damaged.key, b"half of it"))
    assert driver.resume_point(1) == (final.digest, b"final")
    asyncio.run(store.put(latest_checkpoint(RUN, 1), b""))
    assert driver.resume_point(1) == (final.digest, b"final")


def test_what_is_no_segment_and_no_heartbeat_is_passed_over() -> None:
    store = MemoryStore()
    ref = asyncio.run(segment(store, 1))
    asyncio.run(store.put(f"{keys.segments_prefix(RUN, 0)}notes/copy.zip", b"x"))
    asyncio.run(store.put(keys.driver_heartbeat(RUN), b"half of"))
    driver = archive(store)
    assert driver.recorded(0) == [ref.episode]
    assert driver.segments(0, {}) == [ref]
    assert driver.heartbeat() is None
