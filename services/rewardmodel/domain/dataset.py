"""The data of one training: states, ratings and folds of the selected segments, as arrays."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from services.rewardmodel.domain.compared_pairs import PairLabel, to_preferences
from services.rewardmodel.domain.preferences import Ints, PreferencePairs, RatingArrays, Reals, no_pairs
from services.rewardmodel.domain.ratings import Rating
from shared.rewardnet import Floats

STORED_STEPS: Final = 32
"""States kept per segment, evenly spaced and including both ends. Neighbouring states differ by one action and add
little."""


@dataclass(frozen=True, slots=True)
class SegmentFeatures:
    """The subsampled content of one segment archive. `packed` holds its states in 2 kB instead of 16 kB."""

    packed: bytes
    first_step: int
    steps: int
    milestones: int
    view: str

    @property
    def states(self) -> Floats:
        """The states (STORED_STEPS, D), decompressed on every call."""
        return np.frombuffer(zlib.decompress(self.packed), np.float32).reshape(STORED_STEPS, -1)


@dataclass(frozen=True)
class SegmentDataset:
    """n segments as arrays. `episode` numbers the episodes from 0; `milestones` counts those reached by the end.

    `compared` are pairs of these segments that a judge compared directly.
    """

    states: Floats  # (n, STORED_STEPS, D)
    rated: RatingArrays
    fold: Ints
    epoch: Ints
    episode: Ints
    first_step: Reals
    steps: Reals
    milestones: Reals
    compared: PreferencePairs = field(default_factory=no_pairs)

    def __len__(self) -> int:
        """Number of segments."""
        return len(self.states)

    @property
    def episodes(self) -> int:
        """Number of distinct episodes."""
        return int(self.episode.max()) + 1 if len(self) else 0


def pack_states(states: Floats) -> bytes:
    """Compress `states` (STORED_STEPS, D). Neighbouring states differ little, so the fastest level suffices."""
    return zlib.compress(states.tobytes(), 1)


def subsample(states: Floats) -> Floats:
    """Select STORED_STEPS rows of `states` (T, D), including first and last; short segments repeat rows."""
    rows = np.linspace(0, len(states) - 1, STORED_STEPS).round().astype(np.int64)
    return np.ascontiguousarray(states[rows])


def build_dataset(
    ratings: Sequence[Rating],
    features: Sequence[SegmentFeatures],
    folds: Sequence[int],
    width: int,
    compared: Sequence[PairLabel] = (),
) -> SegmentDataset:
    """Build the arrays from three sequences of equal length and order; a state has `width` inputs.

    `compared` names rows of them.
    """
    episodes = sorted({rating.episode for rating in ratings})
    number = {episode: index for index, episode in enumerate(episodes)}
    states = [segment.states for segment in features]
    return SegmentDataset(
        states=np.stack(states) if states else np.zeros((0, STORED_STEPS, width), np.float32),
        rated=RatingArrays(
            value=np.array([rating.value for rating in ratings], np.float64),
            standard_error=np.array([rating.standard_error for rating in ratings], np.float64),
            agreement=np.array([rating.agreement for rating in ratings], np.float64),
        ),
        fold=np.array(folds, np.int64),
        epoch=np.array([rating.epoch for rating in ratings], np.int64),
        episode=np.array([number[rating.episode] for rating in ratings], np.int64),
        first_step=np.array([segment.first_step for segment in features], np.float64),
        steps=np.array([segment.steps for segment in features], np.float64),
        milestones=np.array([segment.milestones for segment in features], np.float64),
        compared=to_preferences(compared),
    )
