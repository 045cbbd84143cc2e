"""From a data set to a reward model: fit from scratch (twice) and from the previous model, and keep the best one.

Deterministic for the same data and rules. With data too few to learn from it returns a neutral model and says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from services.rewardmodel.domain.dataset import SegmentDataset
from services.rewardmodel.domain.preferences import PairBlocks
from services.rewardmodel.training.ensemble import (
    Parameters,
    concatenate,
    initial_parameters,
    to_reward_weights,
    warm_started,
)
from services.rewardmodel.training.fit import LIGHT, STRICT, Regularisation
from services.rewardmodel.training.fit_problem import FitProblem, TrainingConfig, fit_members, standardised_inputs
from shared.contracts.card import Fit
from shared.rewardnet import WIDTH, Floats, RewardWeights, input_statistics, standardise, zero_weights

REGULARISATION: Final[dict[Fit, Regularisation]] = {"full": LIGHT, "strict": STRICT, "warm": LIGHT}
MAX_STATES = 50_000  # for statistics: more change them in the third digit


@dataclass(frozen=True)
class TrainedEnsemble:
    """A fitted ensemble with frozen standardisation, the pairs of each member, and how it came about."""

    weights: RewardWeights
    blocks: Sequence[PairBlocks | None]
    fit: Fit
    validation_loss: dict[str, float]
    problem: FitProblem


@dataclass(frozen=True)
class TrainingTask:
    """What to train on. `masked` are features the model must not see; `previous` may be continued."""

    data: SegmentDataset
    observation: str
    masked: Sequence[int] = ()
    previous: RewardWeights | None = None
    seed: int = 0


def train(task: TrainingTask, config: TrainingConfig, should_cancel: Callable[[], bool]) -> TrainedEnsemble:
    """Fit an ensemble; raise Interrupted soon after `interrupted()` turned true."""
    data = task.data
    mean, scale = _statistics(task)
    problem = FitProblem(standardised_inputs(data.states, mean, scale), data.rated, data.fold, config, task.seed)
    blocks = problem.blocks()
    if all(block is None or not block.pairs for block in blocks):
        return TrainedEnsemble(zero_weights(config.members, task.observation), blocks, "none", {}, problem)
    starts = _starts(task, config, mean, scale)
    fitted = fit_members(
        problem,
        blocks * len(starts),
        problem.validation() * len(starts),
        concatenate(list(starts.values())),
        [REGULARISATION[kind] for kind in starts for _ in range(config.members)],
        config.fit,
        should_cancel,
    )
    losses = fitted.validation_loss.reshape(len(starts), config.members).nanmean(1).tolist()
    known: dict[str, float] = {kind: loss for kind, loss in zip(starts, losses, strict=True) if np.isfinite(loss)}
    best: Fit = min(starts, key=lambda kind: known.get(kind, np.inf))  # the first, `full`, when nothing is known
    place = list(starts).index(best) * config.members
    weights = to_reward_weights(fitted.parameters, slice(place, place + config.members), mean, scale, task.observation)
    weights = standardise(_silenced(weights, blocks), _some_states(data, task.seed))
    return TrainedEnsemble(weights, blocks, best, known, problem)


def _starts(task: TrainingTask, config: TrainingConfig, mean: Floats, scale: Floats) -> dict[Fit, Parameters]:
    starts: dict[Fit, Parameters] = {kind: initial_parameters(config.members, task.seed) for kind in ("full", "strict")}
    previous = task.previous
    if not config.warm_start or previous is None or not previous.value_weight.any():
        return starts
    if previous.members == config.members and previous.observation == task.observation:
        starts["warm"] = warm_started(previous, mean, scale)
    return starts


def _statistics(task: TrainingTask) -> tuple[Floats, Floats]:
    masked = np.zeros(WIDTH, np.bool_)
    masked[list(task.masked)] = True
    states = _some_states(task.data, task.seed)
    if not len(states):
        return np.zeros(WIDTH, np.float32), np.ones(WIDTH, np.float32)
    return input_statistics(states, masked)


def _some_states(data: SegmentDataset, seed: int) -> Floats:
    flat = data.states.reshape(-1, WIDTH)
    if len(flat) <= MAX_STATES:
        return flat
    return flat[np.random.default_rng([seed, 4]).choice(len(flat), MAX_STATES, replace=False)]


def _silenced(weights: RewardWeights, blocks: Sequence[PairBlocks | None]) -> RewardWeights:
    """Members that had nothing to learn from score 0 instead of noise."""
    idle = np.array([block is None or not block.pairs for block in blocks])
    return replace(weights, value_weight=np.where(idle[:, None], np.float32(0), weights.value_weight))
