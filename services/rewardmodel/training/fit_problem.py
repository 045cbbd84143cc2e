"""The input of a fit: standardised states, ratings, folds and configuration, and the batches made of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from torch import Tensor

from services.rewardmodel.domain import folds
from services.rewardmodel.domain.preferences import (
    Ints,
    PairBlocks,
    PairingConfig,
    PreferencePairs,
    RatingArrays,
    sample_pairs,
    training_blocks,
)
from services.rewardmodel.training.batches import BatchStream, validation_batch
from services.rewardmodel.training.ensemble import Parameters, initial_parameters, monotone_parameters
from services.rewardmodel.training.fit import FitConfig, FitResult, Regularisation, fit
from services.rewardmodel.training.state_sampler import StateSampler
from shared.contracts.card import Pooling
from shared.rewardnet import Floats

MAX_VALIDATION_SEGMENTS: Final = 512  # enough to see an improvement, cheap enough to validate often


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that determines a training except its data. There is one fold per member."""

    members: int = 5
    pooling: Pooling = "mean"
    warm_start: bool = True
    shuffles: int = 4  # trainings on shuffled labels; with fewer their mean accuracy is noise
    pairs: PairingConfig = field(default_factory=PairingConfig)
    fit: FitConfig = field(default_factory=FitConfig)


@dataclass(frozen=True)
class FitProblem:
    """One set of labels on one set of states; `inputs` is (n, S, 128), standardised, `fold` is (n,)."""

    inputs: Tensor
    rated: RatingArrays
    fold: Ints
    config: TrainingConfig
    seed: int

    def blocks(self) -> list[PairBlocks | None]:
        """Training pairs of each member; None for a member whose folds contain nothing to compare."""
        return [
            training_blocks(
                self.rated,
                folds.training_rows(self.fold, member, self.config.members),
                np.random.default_rng([self.seed, 0, member]),
                self.config.pairs,
            )
            for member in range(self.config.members)
        ]

    def validation(self) -> list[PreferencePairs]:
        """Validation pairs of each member."""
        found = []
        for member in range(self.config.members):
            rng = np.random.default_rng([self.seed, 3, member])
            rows = folds.rows_of(self.fold, folds.validation_fold(member, self.config.members))
            chosen = rng.permutation(rows)[:MAX_VALIDATION_SEGMENTS]
            found.append(sample_pairs(self.rated, chosen, rng, self.config.pairs, self.config.pairs.cap))
        return found


def standardised_inputs(states: Floats, mean: Floats, scale: Floats) -> Tensor:
    """The network's input (n, S, 128) from states (n, S, 128), mean (128,) and scale (128,)."""
    return torch.from_numpy((states - mean) * scale)


def fresh_parameters(problem: FitProblem, members: int) -> Parameters:
    """Where `members` members start from scratch, of the form that the problem's configuration demands."""
    drawn = initial_parameters(members, problem.seed, problem.inputs.shape[-1])
    return monotone_parameters(drawn) if problem.config.fit.monotone else drawn


def fit_members(
    problem: FitProblem,
    blocks: Sequence[PairBlocks | None],
    validation: Sequence[PreferencePairs],
    start: Parameters,
    regularisations: Sequence[Regularisation],
    config: FitConfig,
    should_cancel: Callable[[], bool],
) -> FitResult:
    """Fit one member per element of `blocks`, `validation` and `regularisations`, from `start`."""
    sampler = StateSampler(problem.inputs, problem.config.pooling, config.strata, problem.seed)
    stream = BatchStream(blocks, problem.seed)
    return fit(start, sampler, stream, validation_batch(validation), regularisations, config, should_cancel)
