"""What the fitting loop is given: standardised states, ratings, folds and rules; and the batches made of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from services.rewardmodel.domain import folds
from services.rewardmodel.domain.preferences import (
    Blocks,
    Ints,
    PairRules,
    Pairs,
    Rated,
    heldout_pairs,
    training_blocks,
)
from services.rewardmodel.training.batches import Reading, Stream, validation_batch
from services.rewardmodel.training.ensemble import Parameters
from services.rewardmodel.training.fit import FitRules, Fitted, Restraint, fit
from shared.contracts.card import Pooling
from shared.rewardnet import Floats

MOST_VALIDATION = 512  # segments: enough to see an improvement, cheap enough to look often


@dataclass(frozen=True)
class TrainRules:
    """Everything that shapes a training besides the data. One fold per member."""

    members: int = 5
    pooling: Pooling = "mean"
    warm_start: bool = True
    shuffles: int = 4  # trainings on shuffled labels; fewer leave their mean accuracy to chance
    pairs: PairRules = field(default_factory=PairRules)
    fit: FitRules = field(default_factory=FitRules)


@dataclass(frozen=True)
class Problem:
    """One set of labels on one set of states; `inputs` is (n, S, 128), standardised."""

    inputs: Tensor
    rated: Rated
    fold: Ints
    rules: TrainRules
    seed: int

    def blocks(self) -> list[Blocks | None]:
        """Training pairs of each member; None for a member whose folds hold nothing to compare."""
        return [
            training_blocks(
                self.rated,
                folds.training_rows(self.fold, member, self.rules.members),
                np.random.default_rng([self.seed, 0, member]),
                self.rules.pairs,
            )
            for member in range(self.rules.members)
        ]

    def validation(self) -> list[Pairs]:
        """Validation pairs of each member."""
        found = []
        for member in range(self.rules.members):
            rng = np.random.default_rng([self.seed, 3, member])
            rows = folds.rows_of(self.fold, folds.validation(member, self.rules.members))
            chosen = rng.permutation(rows)[:MOST_VALIDATION]
            found.append(heldout_pairs(self.rated, chosen, rng, self.rules.pairs, self.rules.pairs.cap))
        return found


def standardised_inputs(states: Floats, mean: Floats, scale: Floats) -> Tensor:
    """States (n, S, 128) as the network's input."""
    return torch.from_numpy((states - mean) * scale)


def solve(
    problem: Problem,
    blocks: Sequence[Blocks | None],
    validation: Sequence[Pairs],
    start: Parameters,
    restraints: Sequence[Restraint],
    rules: FitRules,
    interrupted: Callable[[], bool],
) -> Fitted:
    """Fit as many members as there are `blocks` and `validation` sets, from `start`."""
    reading = Reading(problem.inputs, problem.rules.pooling, rules.strata, problem.seed)
    stream = Stream(blocks, problem.seed)
    return fit(start, reading, stream, validation_batch(validation), restraints, rules, interrupted)
