"""What one training sees: the states of every chosen segment, its rating, its fold, and where it comes from."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from services.rewardmodel.domain.preferences import Ints, RatingArrays, Reals
from services.rewardmodel.domain.ratings import Rating
from shared.rewardnet import WIDTH, Floats

STORED_STEPS: Final = 32
"""States kept of a segment, evenly spaced with both ends: neighbours differ by one action and add little."""


@dataclass(frozen=True, slots=True)
class SegmentFeatures:
    """What is kept of one segment archive; its states packed, which takes 2 kB instead of 16."""

    packed: bytes
    first_step: int
    steps: int
    milestones: int
    observation: str

    @property
    def states(self) -> Floats:
        """(STORED_STEPS, 128), unpacked anew each time."""
        return np.frombuffer(zlib.decompress(self.packed), np.float32).reshape(STORED_STEPS, WIDTH)


@dataclass(frozen=True)
class SegmentDataset:
    """n segments as arrays. `episode` numbers the episodes from 0; `milestones` are those reached at the end."""

    states: Floats  # (n, STORED_STEPS, 128)
    rated: RatingArrays
    fold: Ints
    epoch: Ints
    episode: Ints
    first_step: Reals
    steps: Reals
    milestones: Reals

    def __len__(self) -> int:
        """Number of segments."""
        return len(self.states)

    @property
    def episodes(self) -> int:
        """Number of different episodes."""
        return int(self.episode.max()) + 1 if len(self) else 0


def packed(states: Floats) -> bytes:
    """`states` (STORED_STEPS, 128) as a Recording keeps them. Neighbours differ little: the fastest level does."""
    return zlib.compress(states.tobytes(), 1)


def subsample(observations: Floats) -> Floats:
    """STORED_STEPS rows of `observations` (T, 128), first and last among them; short segments repeat rows."""
    rows = np.linspace(0, len(observations) - 1, STORED_STEPS).round().astype(np.int64)
    return np.ascontiguousarray(observations[rows])


def build_dataset(
    ratings: Sequence[Rating], features: Sequence[SegmentFeatures], folds: Sequence[int]
) -> SegmentDataset:
    """Arrays from as many ratings, features and folds, in the same order."""
    episodes = sorted({rating.episode for rating in ratings})
    number = {episode: place for place, episode in enumerate(episodes)}
    states = [features.states for features in features]
    return SegmentDataset(
        states=np.stack(states) if states else np.zeros((0, STORED_STEPS, WIDTH), np.float32),
        rated=RatingArrays(
            value=np.array([rating.value for rating in ratings], np.float64),
            standard_error=np.array([rating.standard_error for rating in ratings], np.float64),
            agreement=np.array([rating.agreement for rating in ratings], np.float64),
        ),
        fold=np.array(folds, np.int64),
        epoch=np.array([rating.epoch for rating in ratings], np.int64),
        episode=np.array([number[rating.episode] for rating in ratings], np.int64),
        first_step=np.array([features.first_step for features in features], np.float64),
        steps=np.array([features.steps for features in features], np.float64),
        milestones=np.array([features.milestones for features in features], np.float64),
    )
