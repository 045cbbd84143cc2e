"""Trains single epochs of a small run with a real driver and learner, and undoes them."""

import asyncio
from typing import Final

from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.driver import Driver
from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.evaluation import Evaluation
from services.trainer.driver.session import TrainingSession
from services.trainer.driver.session_factory import create_evaluation, create_session
from services.trainer.rl.session_config import TrainingSessionConfig
from services.trainer.settings import DriverGroup
from shared.config.settings import StoreSettings
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.store import keys
from shared.store.port import Store

SMALL: Final = RunConfig(
    world="garden",
    epochs=2,
    epoch_steps=1_024,
    episode_length=300,
    frame_skip=12,
    batch_size=512,
    env_runners=0,
    envs_per_runner=4,
    eval_interval=0,
)


def train(store: Store, name: str, start: EpochStart, record: StoreSettings | None = None) -> EpochFinishedRecord:
    """Order an epoch and run a driver until it is finished. `record` is where it records segments."""

    def make(run: RunId, config: RunConfig) -> tuple[TrainingSession, Evaluation]:
        training = TrainingSessionConfig.of(run, config, DriverGroup(), record)
        return create_session(training, DriverGroup()), create_evaluation(training)

    asyncio.run(store.put(keys.epoch_start(start.run, start.epoch), start.to_bytes()))
    Driver(DriverStore(BlockingStore(store), start.run, name), DriverGroup(idle_s=1), make).run(None)
    return EpochFinishedRecord.from_bytes(asyncio.run(store.get(keys.epoch_finished(start.run, start.epoch))))


async def forget(store: Store, run: RunId, epoch: int) -> None:
    """Undo an epoch, as if its driver had been killed before its first checkpoint."""
    await store.delete(keys.epoch_start(run, epoch))
    await store.delete(keys.epoch_finished(run, epoch))
    for entry in await store.list(keys.checkpoint_prefix(run, epoch)):
        await store.delete(entry.key)
