"""A training run with restarts: each epoch adds to the archive, and a repeated epoch plays the same."""

import asyncio
from pathlib import Path

import pytest

from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.driver import Driver
from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.evaluation import Evaluation
from services.trainer.driver.session import TrainingSession
from services.trainer.driver.session_factory import create_evaluation, create_session
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.rl.session_config import TrainingSessionConfig
from services.trainer.settings import DriverGroup
from shared.contracts.epoch import ArchiveRef, EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.progress import ArchiveCoverage
from shared.contracts.run import RestartsConfig, RunConfig
from shared.store import keys
from shared.store.object_store import local_store
from shared.store.port import Store
from tests.unit.trainer.run_fixtures import NOW, RUN, run_in

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on every start
]
CONFIG = RunConfig(
    world="garden",
    epochs=2,
    epoch_steps=1_024,
    episode_length=300,
    frame_skip=12,
    batch_size=512,
    env_runners=0,
    envs_per_runner=4,
    eval_interval=0,
    restarts=RestartsConfig(share=0.5),
)


def make(run: RunId, config: RunConfig) -> tuple[TrainingSession, Evaluation]:
    training = TrainingSessionConfig.of(run, config, DriverGroup(), None)
    return create_session(training, DriverGroup()), create_evaluation(training)


def train(store: Store, name: str, epoch: int, archive: ArchiveRef | None) -> EpochFinishedRecord:
    """Order an epoch and run a driver until it is finished."""
    start = EpochStart(run=RUN, epoch=epoch, fence=1, config=CONFIG, archive=archive, created=NOW)
    asyncio.run(store.create(keys.epoch_start(RUN, epoch), start.to_bytes()))
    Driver(DriverStore(BlockingStore(store), RUN, name), DriverGroup(idle_s=1), make).run(None)
    return EpochFinishedRecord.from_bytes(asyncio.run(store.get(keys.epoch_finished(RUN, epoch))))


async def forget(store: Store, epoch: int) -> None:
    """Undo an epoch, as if its driver had been killed before its first checkpoint."""
    await store.delete(keys.epoch_start(RUN, epoch))
    await store.delete(keys.epoch_finished(RUN, epoch))
    for entry in await store.list(keys.checkpoint_prefix(RUN, epoch)):
        await store.delete(entry.key)


def test_each_epoch_adds_to_the_archive_and_a_repeated_one_plays_the_same(tmp_path: Path) -> None:
    store = local_store(tmp_path)
    asyncio.run(run_in(store, config=CONFIG))
    first = train(store, "d1", 0, None)
    assert first.archive is not None
    second = train(store, "d2", 1, first.archive)
    assert second.archive is not None
    assert second.metrics["restarts/cells"] > first.metrics["restarts/cells"] > 10
    coverage = ArchiveCoverage.from_bytes(asyncio.run(store.get(keys.archive_coverage(RUN, 1))))
    assert sum(room.cells for room in coverage.rooms) == second.metrics["restarts/cells"]
    grown = second.metrics["restarts/cells"] - first.metrics["restarts/cells"]
    assert sum(room.new_cells for room in coverage.rooms) == grown
    asyncio.run(forget(store, 1))
    assert train(store, "d3", 1, first.archive).archive == second.archive
    whole = RunArchive.load(second.archive, lambda one: asyncio.run(store.get(one.key, one.digest)))
    assert any(entry.parent is not None for entry in whole.archive.entries)
