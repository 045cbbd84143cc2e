"""Gathers what a training needs and has it done, one training at a time; where it is done is the wiring's choice."""

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
from shared.game.observation.layout import VERSION
from shared.rewardnet import RewardWeights, dump


@dataclass(frozen=True)
class TrainingData:
    """What one training is made of; three lists of one length."""

    ratings: Sequence[Rating]
    features: Sequence[SegmentFeatures]
    folds: Sequence[int]


class TrainingRunner:
    """`interrupted` is asked while a training runs; when it turns true, that training raises Interrupted."""

    def __init__(
        self,
        scores: ScoreCache,
        features: SegmentFeatureLoader,
        group: RewardModelGroup,
        training: TrainFunction,
        should_cancel: Callable[[], bool],
    ) -> None:
        """Nothing is loaded yet."""
        self._scores, self._features, self._group, self._interrupted = scores, features, group, should_cancel
        self._training = training
        self._one_at_a_time = asyncio.Lock()
        self._urgent = 0  # finished epochs that wait for the workbench or use it

    @property
    def busy(self) -> bool:
        """Whether a training runs now."""
        return self._one_at_a_time.locked()

    async def load_data(self, run: RunId, epoch: int) -> TrainingData:
        """The run's judged segments up to `epoch`, as far as the reservoir holds them.

        They hold obs/v1 whatever the run's policy sees, and so that is what a reward model reads.
        """
        ratings = await self._scores.ratings(run, epoch)
        chosen = select_ratings(ratings, epoch, self._group.capacity, max(self._group.new_share, 1e-3))
        usable = await self._features.of(chosen, VERSION)
        kept = [rating for rating, _ in usable]
        folds = [fold_of(run, rating.episode, self._group.members) for rating in kept]
        return TrainingData(kept, [recording for _, recording in usable], folds)

    async def train_final(
        self, data: TrainingData, epoch: int, quorum: bool, previous: RewardWeights | None
    ) -> TrainingResult:
        """Train and measure for a finished epoch; raise Interrupted when the service is stopping."""
        self._urgent += 1
        try:
            async with self._one_at_a_time:
                return await self._training(self._request(data, epoch, quorum, previous), self._interrupted)
        finally:
            self._urgent -= 1

    async def train_interim(self, data: TrainingData, epoch: int, previous: RewardWeights | None) -> TrainingResult:
        """Train and measure with the scores so far; raise Interrupted as soon as a finished epoch needs its turn."""
        async with self._one_at_a_time:
            return await self._training(self._request(data, epoch, False, previous), self._yielding)

    def _yielding(self) -> bool:
        return self._urgent > 0 or self._interrupted()

    def _request(self, data: TrainingData, epoch: int, quorum: bool, previous: RewardWeights | None) -> TrainingRequest:
        return TrainingRequest(
            group=self._group,
            ratings=list(data.ratings),
            features=list(data.features),
            folds=list(data.folds),
            observation=VERSION,
            # The data decide the seed: whoever trains on them again gets the same model.
            seed=int(data_digest(data.ratings)[:8], 16),
            epoch=epoch,
            quorum=quorum,
            previous=dump(previous) if previous is not None else None,
        )
