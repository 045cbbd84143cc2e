"""Loads the data of a training and runs one training at a time. The wiring chooses where a training runs."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.rewardmodel.adapters.score_cache import ScoreCache
from services.rewardmodel.adapters.segment_features import SegmentFeatureLoader
from services.rewardmodel.card_builder import data_digest
from services.rewardmodel.domain.dataset import SegmentFeatures
from services.rewardmodel.domain.folds import fold_of
from services.rewardmodel.domain.ratings import Rating
from services.rewardmodel.domain.segment_selection import select_ratings
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training_protocol import TrainFunction, TrainingRequest, TrainingResult
from shared.contracts.ids import RunId
from shared.rewardnet import RewardWeights, dump


@dataclass(frozen=True)
class TrainingData:
    """The segments of one training: three lists of equal length."""

    ratings: Sequence[Rating]
    features: Sequence[SegmentFeatures]
    folds: Sequence[int]


class TrainingRunner:
    """Runs trainings. Once `should_cancel()` returns True, the running training raises TrainingCancelled."""

    def __init__(
        self,
        scores: ScoreCache,
        features: SegmentFeatureLoader,
        group: RewardModelGroup,
        train: TrainFunction,
        should_cancel: Callable[[], bool],
    ) -> None:
        self._scores, self._features, self._group = scores, features, group
        self._train, self._should_cancel = train, should_cancel
        self._training_lock = asyncio.Lock()
        self._final_trainings = 0  # waiting for the lock or running

    @property
    def view(self) -> str:
        """What the models see, one of `rewardnet.WIDTHS`."""
        return self._group.view

    @property
    def busy(self) -> bool:
        """Whether a training is running."""
        return self._training_lock.locked()

    async def load_data(self, run: RunId, epoch: int) -> TrainingData:
        """Select and load the run's judged segments up to `epoch`."""
        ratings = await self._scores.ratings(run, epoch)
        selected = select_ratings(ratings, epoch, self._group.capacity, max(self._group.new_share, 1e-3))
        loaded = await self._features.load(selected)
        folds = [fold_of(run, rating.episode, self._group.members) for rating, _ in loaded]
        return TrainingData([rating for rating, _ in loaded], [features for _, features in loaded], folds)

    async def train_final(
        self, data: TrainingData, epoch: int, quorum: bool, previous: RewardWeights | None
    ) -> TrainingResult:
        """Train and evaluate for a finished epoch; raise TrainingCancelled when the service is stopping."""
        self._final_trainings += 1
        try:
            async with self._training_lock:
                return await self._train(self._request(data, epoch, quorum, previous), self._should_cancel)
        finally:
            self._final_trainings -= 1

    async def train_interim(self, data: TrainingData, epoch: int, previous: RewardWeights | None) -> TrainingResult:
        """Train and evaluate on the scores so far; raise TrainingCancelled when a finished epoch needs the slot."""
        async with self._training_lock:
            return await self._train(self._request(data, epoch, False, previous), self._should_cancel_interim)

    def _should_cancel_interim(self) -> bool:
        return self._final_trainings > 0 or self._should_cancel()

    def _request(self, data: TrainingData, epoch: int, quorum: bool, previous: RewardWeights | None) -> TrainingRequest:
        return TrainingRequest(
            group=self._group,
            ratings=list(data.ratings),
            features=list(data.features),
            folds=list(data.folds),
            observation=self._group.view,
            # The data determine the seed, so that another training on them gives the same model.
            seed=int(data_digest(data.ratings)[:8], 16),
            epoch=epoch,
            quorum=quorum,
            previous=dump(previous) if previous is not None else None,
        )
