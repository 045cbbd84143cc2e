"""Gathers a data set and trains on it in a worker thread, one training at a time, so that the loop's heartbeats go on.

torch is imported in that thread, at the first training: starting and being healthy do not wait for it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from services.rewardmodel.adapters.recordings import Recordings
from services.rewardmodel.adapters.scores import Scores
from services.rewardmodel.cards import data_digest
from services.rewardmodel.domain.dataset import Dataset, assemble
from services.rewardmodel.domain.folds import fold_of
from services.rewardmodel.domain.gates import GateRules
from services.rewardmodel.domain.preferences import PairRules
from services.rewardmodel.domain.ratings import Rating
from services.rewardmodel.domain.reservoir import choose
from services.rewardmodel.settings import RewardModelGroup
from shared.contracts.ids import RunId
from shared.game.layout import FEATURES, INDEX
from shared.rewardnet import RewardWeights, dump

if TYPE_CHECKING:
    from services.rewardmodel.training.problem import TrainRules
    from services.rewardmodel.training.report import Report
    from services.rewardmodel.training.train import Trained


@dataclass(frozen=True)
class Material:
    """What one training is made of."""

    ratings: Sequence[Rating]
    data: Dataset
    observation: str
    seed: int


@dataclass(frozen=True)
class Product:
    """A trained and measured model, its file, its plain state dict for other tools, and how long it took."""

    trained: "Trained"
    report: "Report"
    weights: bytes
    state_dict: bytes
    seconds: float


class Workbench:
    """`interrupted` is asked between steps; when it turns true, the running training raises Interrupted."""

    def __init__(
        self, scores: Scores, recordings: Recordings, group: RewardModelGroup, interrupted: Callable[[], bool]
    ) -> None:
        """Nothing is loaded yet."""
        self._scores, self._recordings, self._group, self._interrupted = scores, recordings, group, interrupted
        self._one_at_a_time = asyncio.Lock()
        self._urgent = 0  # finished epochs that wait for the workbench or use it

    @property
    def busy(self) -> bool:
        """Whether a training runs now."""
        return self._one_at_a_time.locked()

    async def material(self, run: RunId, epoch: int, observation: str) -> Material:
        """The run's judged segments up to `epoch`, as far as the reservoir holds them."""
        ratings = await self._scores.ratings(run, epoch)
        chosen = choose(ratings, epoch, self._group.capacity, max(self._group.new_share, 1e-3))
        usable = await self._recordings.of(chosen, observation)
        kept = [rating for rating, _ in usable]
        folds = [fold_of(run, rating.episode, self._group.members) for rating in kept]
        data = assemble(kept, [recording for _, recording in usable], folds)
        # The data decide the seed: whoever trains on them again gets the same model.
        return Material(kept, data, observation, int(data_digest(kept)[:8], 16))

    async def make(self, material: Material, epoch: int, quorum: bool, previous: RewardWeights | None) -> Product:
        """Train and measure for a finished epoch; raise Interrupted when the service is stopping."""
        self._urgent += 1
        try:
            async with self._one_at_a_time:
                return await asyncio.to_thread(self._make, material, epoch, quorum, previous, self._interrupted)
        finally:
            self._urgent -= 1

    async def try_out(self, material: Material, epoch: int, previous: RewardWeights | None) -> Product:
        """Train and measure with the scores so far; raise Interrupted as soon as a finished epoch needs its turn."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._make, material, epoch, False, previous, self._yielding)

    def _yielding(self) -> bool:
        return self._urgent > 0 or self._interrupted()

    def _make(
        self,
        material: Material,
        epoch: int,
        quorum: bool,
        previous: RewardWeights | None,
        interrupted: Callable[[], bool],
    ) -> Product:
        import torch

        from services.rewardmodel.training import report, train
        from services.rewardmodel.training.statedict import plain_state_dict

        torch.set_num_threads(self._group.threads)
        began = time.monotonic()
        masked = [INDEX[name] for name in self._group.masked]
        task = train.Task(material.data, material.observation, masked, previous, material.seed)
        trained = train.train(task, self._rules(), interrupted)
        names = [feature.name for feature in FEATURES]
        gates = GateRules(**self._group.gates.model_dump())
        measured = report.report(task, trained, epoch, quorum, names, gates, interrupted)
        if measured.reliability is not None:
            weights = replace(trained.weights, temperature=measured.reliability.temperature)
            trained = replace(trained, weights=weights)
        state_dict = plain_state_dict(trained.weights)
        return Product(trained, measured, dump(trained.weights), state_dict, time.monotonic() - began)

    def _rules(self) -> "TrainRules":
        from services.rewardmodel.training.fit import FitRules
        from services.rewardmodel.training.problem import TrainRules

        group = self._group
        return TrainRules(
            members=group.members,
            pooling=group.pooling,
            warm_start=group.warm_start,
            shuffles=group.shuffles,
            fit=FitRules(most_steps=group.steps),
            pairs=PairRules(margin=group.tie_margin, cap=group.pairs_per_segment),
        )
