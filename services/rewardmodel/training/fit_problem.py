"""The input of a fit: standardised states, ratings, folds and configuration, and the batches made of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import torch
from torch import Tensor

from services.rewardmodel.domain import folds
from services.rewardmodel.domain.compared_pairs import (
    compared_blocks,
    training_pairs,
    validation_pairs,
    weight_of_one,
    with_compared,
)
from services.rewardmodel.domain.preferences import (
    Ints,
    PairBlocks,
    PairingConfig,
    PreferencePairs,
    RatingArrays,
    join_pairs,
    no_pairs,
    rating_blocks,
    sample_pairs,
    stack_blocks,
)
from services.rewardmodel.training.batches import BatchStream, validation_batch
from services.rewardmodel.training.ensemble import Parameters, initial_parameters, monotone_parameters
from services.rewardmodel.training.fit import FitConfig, FitResult, Regularisation, fit
from services.rewardmodel.training.state_sampler import StateSampler
from shared.contracts.card import Pooling
from shared.contracts.learning.reward_learning import LabelSource
from shared.rewardnet import Floats

MAX_VALIDATION_SEGMENTS: Final = 512  # enough to see an improvement, cheap enough to validate often


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that determines a training except its data. There is one fold per member."""

    members: int = 5
    labels: LabelSource = "ratings"
    pooling: Pooling = "mean"
    warm_start: bool = True
    shuffles: int = 4  # trainings on shuffled labels; with fewer their mean accuracy is noise
    pairs: PairingConfig = field(default_factory=PairingConfig)
    fit: FitConfig = field(default_factory=FitConfig)


@dataclass(frozen=True)
class FitProblem:
    """One set of labels on one set of states; `inputs` is (n, S, D), standardised, `fold` is (n,).

    `compared` are pairs of rows that a judge compared directly.
    """

    inputs: Tensor
    rated: RatingArrays
    fold: Ints
    config: TrainingConfig
    seed: int
    compared: PreferencePairs = field(default_factory=no_pairs)

    def blocks(self) -> list[PairBlocks | None]:
        """Training pairs of each member; None for a member whose folds contain nothing to compare."""
        return [self._blocks_of(member) for member in range(self.config.members)]

    def compared_by(self, member: int) -> PreferencePairs:
        """The compared pairs that train this member."""
        if self.config.labels == "ratings":
            return no_pairs()
        return training_pairs(self.compared, self.fold, member, self.config.members)

    def validation(self) -> list[PreferencePairs]:
        """Validation pairs of each member, of the kinds that train it."""
        return [self._validation_of(member) for member in range(self.config.members)]

    def _blocks_of(self, member: int) -> PairBlocks | None:
        config, compared = self.config.pairs, self.compared_by(member)
        if self.config.labels == "pairs":
            return compared_blocks(compared, np.random.default_rng([self.seed, 8, member]), config)
        rng = np.random.default_rng([self.seed, 0, member])
        rows = folds.training_rows(self.fold, member, self.config.members)
        blocks, rounds = rating_blocks(self.rated, rows, rng, config)
        if blocks and len(compared):
            blocks = with_compared(blocks, rounds, compared, np.random.default_rng([self.seed, 8, member]))
        return stack_blocks(blocks, config.tie_share)

    def _validation_of(self, member: int) -> PreferencePairs:
        members = self.config.members
        compared = validation_pairs(self.compared, self.fold, member, members)
        if self.config.labels == "pairs":
            return compared
        rng = np.random.default_rng([self.seed, 3, member])
        rows = folds.rows_of(self.fold, folds.validation_fold(member, members))
        chosen = rng.permutation(rows)[:MAX_VALIDATION_SEGMENTS]
        rated = sample_pairs(self.rated, chosen, rng, self.config.pairs, self.config.pairs.cap)
        if self.config.labels == "ratings":
            return rated
        weight = compared.weight * weight_of_one(rated.weight, len(chosen))
        return join_pairs([rated, replace(compared, weight=weight)])


def standardised_inputs(states: Floats, mean: Floats, scale: Floats) -> Tensor:
    """The network's input (n, S, D) from states (n, S, D), mean (D,) and scale (D,)."""
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
