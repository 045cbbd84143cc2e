"""Trains a reward model on a data set: fits from scratch (twice) and from the previous model, and keeps the best fit.

Deterministic for equal data and configuration. With too few data it returns a neutral model that scores every state 0.
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
    to_reward_weights,
    warm_start_parameters,
)
from services.rewardmodel.training.fit import LIGHT, STRICT, Regularisation
from services.rewardmodel.training.fit_problem import (
    FitProblem,
    TrainingConfig,
    fit_members,
    fresh_parameters,
    standardised_inputs,
)
from shared.contracts.card import Fit
from shared.rewardnet import WIDTHS, Floats, RewardWeights, input_statistics, standardise, zero_weights

REGULARISATION: Final[dict[Fit, Regularisation]] = {"full": LIGHT, "strict": STRICT, "warm": LIGHT}
MAX_STATES: Final = 50_000  # for statistics: more states change the third digit


@dataclass(frozen=True)
class TrainedEnsemble:
    """A fitted ensemble with frozen standardisation, the training pairs of each member, and its kind of fit."""

    weights: RewardWeights
    blocks: Sequence[PairBlocks | None]
    fit: Fit
    validation_loss: dict[str, float]
    problem: FitProblem


@dataclass(frozen=True)
class TrainingTask:
    """The data of a training. `masked` lists features hidden from the model; `previous` may be continued."""

    data: SegmentDataset
    observation: str
    masked: Sequence[int] = ()
    previous: RewardWeights | None = None
    seed: int = 0

    @property
    def width(self) -> int:
        """Number of inputs."""
        return WIDTHS[self.observation]


def train(task: TrainingTask, config: TrainingConfig, should_cancel: Callable[[], bool]) -> TrainedEnsemble:
    """Fit an ensemble; raise TrainingCancelled soon after `should_cancel()` returns True."""
    data = task.data
    mean, scale = _input_statistics(task)
    inputs = standardised_inputs(data.states, mean, scale)
    problem = FitProblem(inputs, data.rated, data.fold, config, task.seed, data.compared)
    blocks = problem.blocks()
    if all(block is None or not block.pairs for block in blocks):
        return TrainedEnsemble(zero_weights(config.members, task.observation), blocks, "none", {}, problem)
    starts = _start_parameters(task, problem, mean, scale)
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
    best: Fit = min(starts, key=lambda kind: known.get(kind, np.inf))  # without any loss the first one, `full`
    begin = list(starts).index(best) * config.members
    weights = to_reward_weights(fitted.parameters, slice(begin, begin + config.members), mean, scale, task.observation)
    weights = standardise(_silence_idle_members(weights, blocks), _sample_states(data, task.seed))
    return TrainedEnsemble(weights, blocks, best, known, problem)


def _start_parameters(task: TrainingTask, problem: FitProblem, mean: Floats, scale: Floats) -> dict[Fit, Parameters]:
    config, previous = problem.config, task.previous
    starts: dict[Fit, Parameters] = {kind: fresh_parameters(problem, config.members) for kind in ("full", "strict")}
    if not config.warm_start or previous is None or not previous.value_weight.any():
        return starts
    if previous.members == config.members and previous.observation == task.observation:
        starts["warm"] = warm_start_parameters(previous, mean, scale)
    return starts


def _input_statistics(task: TrainingTask) -> tuple[Floats, Floats]:
    masked = np.zeros(task.width, np.bool_)
    masked[list(task.masked)] = True
    states = _sample_states(task.data, task.seed)
    if not len(states):
        return np.zeros(task.width, np.float32), np.ones(task.width, np.float32)
    return input_statistics(states, masked)


def _sample_states(data: SegmentDataset, seed: int) -> Floats:
    """At most MAX_STATES states (N, D)."""
    flat = data.states.reshape(-1, data.states.shape[-1])
    if len(flat) <= MAX_STATES:
        return flat
    return flat[np.random.default_rng([seed, 4]).choice(len(flat), MAX_STATES, replace=False)]


def _silence_idle_members(weights: RewardWeights, blocks: Sequence[PairBlocks | None]) -> RewardWeights:
    """Let members without training pairs score 0 instead of noise."""
    idle = np.array([block is None or not block.pairs for block in blocks])
    return replace(weights, value_weight=np.where(idle[:, None], np.float32(0), weights.value_weight))
