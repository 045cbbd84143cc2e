"""What happens while scores stream in: waiters are woken, and now and then a model is trained to start warm from.

Such an interim model is never published. It sees the same folds as the final one, so no held-out figure is spoilt.
Losing all of this costs time only.
"""

import asyncio
import time
from dataclasses import dataclass, field

import structlog

from services.rewardmodel import telemetry
from services.rewardmodel.domain.debounce import Debounce, DebounceConfig
from services.rewardmodel.errors import TrainingCancelled
from services.rewardmodel.training_runner import TrainingRunner
from shared.contracts.ids import RunId
from shared.game.observation.layout import VERSION
from shared.rewardnet import RewardWeights, load
from shared.store import keys
from shared.store.port import Store

TICK_S = 1.0
MAX_OPEN_EPOCHS = 256  # epochs remembered at once; the oldest is forgotten first
log = structlog.get_logger(__name__)


@dataclass
class _Open:
    """One epoch whose scores are coming."""

    debounce: Debounce
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    model: RewardWeights | None = None  # the newest interim one


class InterimTrainer:
    """Open epochs, each with its newest interim model."""

    def __init__(self, store: Store, runner: TrainingRunner, config: DebounceConfig) -> None:
        """Nothing is open yet."""
        self._store, self._runner, self._config = store, runner, config
        self._open: dict[tuple[RunId, int], _Open] = {}

    def score(self, run: RunId, epoch: int, now: float) -> None:
        """A score came; `now` is the monotonic clock."""
        entry = self._entry(run, epoch)
        entry.debounce.score(now)
        entry.arrived.set()

    def arrival(self, run: RunId, epoch: int) -> asyncio.Event:
        """An event that the next score of this epoch sets."""
        entry = self._entry(run, epoch)
        entry.arrived = asyncio.Event()
        return entry.arrived

    def interim(self, run: RunId, epoch: int) -> RewardWeights | None:
        """The newest interim model of an epoch, if there is one. An earlier epoch's is older than that one's card."""
        entry = self._open.get((run, epoch))
        return entry.model if entry is not None else None

    def done(self, run: RunId, epoch: int) -> None:
        """The epoch has its reward model; nothing of it needs remembering."""
        self._open.pop((run, epoch), None)

    async def run(self) -> None:
        """Retrain where it is due, for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            for (run, epoch), entry in list(self._open.items()):
                if entry.debounce.due(time.monotonic()) and not self._runner.busy:
                    entry.debounce.ran(time.monotonic())
                    await self.retrain(run, epoch)

    async def retrain(self, run: RunId, epoch: int) -> None:
        """Train on the scores that are in and remember the model."""
        key = keys.reward_model_card(run, epoch)
        if await self._store.exists(key):
            self.done(run, epoch)
            return
        data = await self._runner.load_data(run, epoch)
        try:
            result = await self._runner.train_interim(data, epoch, self.interim(run, epoch))
        except TrainingCancelled:
            return  # a finished epoch is trained instead, on more scores
        telemetry.TRAINING_SECONDS.labels("interim").observe(result.seconds)
        accuracy = result.report.accuracy.confident
        if accuracy is not None:
            telemetry.ACCURACY.labels("interim").set(accuracy)
        log.info("interim reward model", run=run, epoch=epoch, segments=len(data.ratings), accuracy=accuracy)
        if (run, epoch) in self._open:  # else the epoch was closed meanwhile
            self._open[run, epoch].model = load(result.weights, VERSION)

    def _entry(self, run: RunId, epoch: int) -> _Open:
        if (run, epoch) not in self._open:
            while len(self._open) >= MAX_OPEN_EPOCHS:
                del self._open[next(iter(self._open))]
            self._open[run, epoch] = _Open(Debounce(self._config))
        return self._open[run, epoch]
