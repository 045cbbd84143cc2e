"""Train one reward model outside of the ring: from the scores that exist now, without bus or waiting."""

import asyncio

from services.rewardmodel.adapters.model_store import StoredCard
from services.rewardmodel.adapters.training_process import train_in_subprocess
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training_protocol import TrainFunction
from services.rewardmodel.wiring import build_handlers
from shared.bus.memory import MemoryBus
from shared.contracts.ids import RunId
from shared.runtime.service import ServicePorts
from shared.store.port import Store


async def train_epoch(
    group: RewardModelGroup, store: Store, run: RunId, epoch: int, train: TrainFunction = train_in_subprocess
) -> StoredCard:
    """Return the epoch's model: the stored one, or else one trained on all scores up to this epoch and committed.

    Raises NotFound if the epoch has not ended.
    """
    handlers = build_handlers(group, ServicePorts(MemoryBus(), store, asyncio.Event()), train)
    return await handlers.train_now(run, epoch)
