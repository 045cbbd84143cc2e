"""Tracks the epochs whose scores are arriving, and trains interim models as warm starts for their final models.

Interim models are never published. They use the folds of the final model, so its held-out figures stay valid. Losing
this state costs training time only.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final

import structlog

from services.rewardmodel import telemetry
from services.rewardmodel.domain.debounce import Debounce, DebounceConfig
from services.rewardmodel.errors import TrainingCancelled
from services.rewardmodel.training_runner import TrainingRunner
from shared.contracts.ids import RunId
from shared.process.bounded_cache import BoundedCache
from shared.rewardnet import RewardWeights, load
from shared.store import keys
from shared.store.port import Store

POLL_S: Final = 1.0
MAX_OPEN_EPOCHS: Final = 256  # the least recently used epoch is evicted first
log = structlog.get_logger(__name__)


@dataclass
class _OpenEpoch:
    """One epoch whose scores are arriving. `model` is its latest interim model."""

    debounce: Debounce
    arrival: asyncio.Event = field(default_factory=asyncio.Event)
    model: RewardWeights | None = None


class InterimTrainer:
    """Retrains an open epoch when its debounce is due and no other training runs."""

    def __init__(self, store: Store, runner: TrainingRunner, config: DebounceConfig) -> None:
        self._store, self._runner, self._config = store, runner, config
        self._epochs: BoundedCache[tuple[RunId, int], _OpenEpoch] = BoundedCache(MAX_OPEN_EPOCHS)

    def record_score(self, run: RunId, epoch: int, now: float) -> None:
        """Count a new score and wake waiters; `now` is the monotonic clock in seconds."""
        entry = self._open(run, epoch)
        entry.debounce.record_score(now)
        entry.arrival.set()

    def next_arrival(self, run: RunId, epoch: int) -> asyncio.Event:
        """Return an asyncio event that the epoch's next score sets."""
        entry = self._open(run, epoch)
        entry.arrival = asyncio.Event()
        return entry.arrival

    def latest_model(self, run: RunId, epoch: int) -> RewardWeights | None:
        """The epoch's latest interim model, if any. Models of earlier epochs are older than those epochs' cards."""
        entry = self._epochs.get((run, epoch))
        return entry.model if entry is not None else None

    def close_epoch(self, run: RunId, epoch: int) -> None:
        """Forget an epoch that has its final model."""
        self._epochs.pop((run, epoch))

    async def run(self) -> None:
        """Retrain due epochs until cancelled."""
        while True:
            await asyncio.sleep(POLL_S)
            for run, epoch in self._epochs:
                entry = self._epochs.get((run, epoch))
                if entry is not None and entry.debounce.due(time.monotonic()) and not self._runner.busy:
                    entry.debounce.record_training(time.monotonic())
                    await self.retrain(run, epoch)

    async def retrain(self, run: RunId, epoch: int) -> None:
        """Train on the scores so far and keep the model."""
        if await self._store.exists(keys.reward_model_card(run, epoch)):
            self.close_epoch(run, epoch)
            return
        data = await self._runner.load_data(run, epoch)
        try:
            result = await self._runner.train_interim(data, epoch, self.latest_model(run, epoch))
        except TrainingCancelled:
            return  # a finished epoch needs the slot
        telemetry.TRAINING_SECONDS.labels("interim").observe(result.seconds)
        accuracy = result.report.accuracy.confident
        if accuracy is not None:
            telemetry.ACCURACY.labels("interim").set(accuracy)
        log.info("interim model trained", run=run, epoch=epoch, segments=len(data.ratings), accuracy=accuracy)
        entry = self._epochs.get((run, epoch))
        if entry is not None:  # the epoch may have been closed during the training
            entry.model = load(result.weights, self._runner.view)

    def _open(self, run: RunId, epoch: int) -> _OpenEpoch:
        return self._epochs.get_or_make((run, epoch), lambda: _OpenEpoch(Debounce(self._config)))
