"""Loads the data of a training and runs one training at a time. The wiring chooses where a training runs."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from services.rewardmodel.adapters.pair_labels import PairLabelReader, PairLabels
from services.rewardmodel.adapters.score_cache import ScoreCache
from services.rewardmodel.adapters.segment_features import SegmentFeatureLoader
from services.rewardmodel.domain.dataset import SegmentFeatures
from services.rewardmodel.domain.folds import fold_of
from services.rewardmodel.domain.ratings import Rating
from services.rewardmodel.domain.segment_selection import select_ratings
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training_protocol import TrainFunction, TrainingRequest, TrainingResult
from shared.contracts.ids import RunId
from shared.contracts.learning.reward_learning import LabelSource
from shared.rewardnet import RewardWeights, dump


@dataclass(frozen=True)
class TrainingData:
    """The segments of one training, three lists of equal length, the pairs that were compared, and its seed."""

    ratings: Sequence[Rating]
    features: Sequence[SegmentFeatures]
    folds: Sequence[int]
    seed: int
    source: LabelSource = "ratings"
    compared: PairLabels = field(default_factory=PairLabels)


class TrainingRunner:
    """Runs trainings. Once `should_cancel()` returns True, the running training raises TrainingCancelled."""

    def __init__(
        self,
        scores: ScoreCache,
        pairs: PairLabelReader,
        features: SegmentFeatureLoader,
        group: RewardModelGroup,
        train: TrainFunction,
        should_cancel: Callable[[], bool],
    ) -> None:
        self._scores, self._pairs, self._features, self._group = scores, pairs, features, group
        self._train, self._should_cancel = train, should_cancel
        self._training_lock = asyncio.Lock()

    @property
    def view(self) -> str:
        """What the models see, one of `rewardnet.WIDTHS`."""
        return self._group.view

    async def load_data(self, run: RunId, epoch: int, run_seed: int, source: LabelSource) -> TrainingData:
        """Select and load the run's judged segments up to `epoch`, in the order of their names, and their pairs."""
        ratings = await self._scores.ratings(run, epoch)
        selected = select_ratings(ratings, epoch, self._group.capacity, self._group.new_share)
        loaded = await self._features.load(selected)
        folds = [fold_of(run_seed, rating.episode, self._group.members) for rating, _ in loaded]
        rows = {rating.segment: row for row, (rating, _) in enumerate(loaded)}
        compared = PairLabels() if source == "ratings" else await self._pairs.up_to(run, epoch, rows)
        return TrainingData(
            ratings=[rating for rating, _ in loaded],
            features=[features for _, features in loaded],
            folds=folds,
            seed=training_seed(run_seed, epoch),
            source=source,
            compared=compared,
        )

    async def train(
        self, data: TrainingData, epoch: int, quorum: bool, previous: RewardWeights | None
    ) -> TrainingResult:
        """Train and evaluate for a finished epoch; raise TrainingCancelled when the service is stopping."""
        async with self._training_lock:
            return await self._train(self._request(data, epoch, quorum, previous), self._should_cancel)

    def _request(self, data: TrainingData, epoch: int, quorum: bool, previous: RewardWeights | None) -> TrainingRequest:
        return TrainingRequest(
            group=self._group,
            ratings=list(data.ratings),
            features=list(data.features),
            folds=list(data.folds),
            observation=self._group.view,
            seed=data.seed,
            epoch=epoch,
            quorum=quorum,
            previous=dump(previous) if previous is not None else None,
            labels=data.source,
            compared=data.compared.labels,
        )


def training_seed(run_seed: int, epoch: int) -> int:
    """The seed of an epoch's training, below 2**32. Run seed and epoch determine it; time and arrival do not."""
    return int.from_bytes(hashlib.sha256(f"{run_seed}/{epoch}".encode()).digest()[:4], "big")
