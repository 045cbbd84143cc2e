"""The training loop: all members in one batch, each stopped early by its own validation fold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from services.rewardmodel.errors import TrainingCancelled
from services.rewardmodel.training.batches import BatchStream, PairBatch
from services.rewardmodel.training.ensemble import WEIGHTS, Parameters, clamp_weights, forward
from services.rewardmodel.training.state_sampler import StateSampler


@dataclass(frozen=True)
class FitConfig:
    """Length and speed of a fit."""

    learning_rate: float = 1e-3
    centring: float = 0.01  # weight of squared segment scores: Bradley-Terry leaves their offset undetermined
    passes: int = 12  # maximum passes over all pairs
    min_steps: int = 400
    max_steps: int = 2_000  # bounds the time that an epoch waits for its reward model
    patience: int = 8  # validations without improvement before a member stops
    unvalidated_steps: int = 150  # for members without validation pairs; more steps would fit the noise of few ratings
    strata: int = 8  # states sampled per segment, with `mean` pooling
    monotone: bool = False  # constrain the signs of weights, so that no score falls when an input rises


@dataclass(frozen=True)
class Regularisation:
    """Keeps few ratings from overfitting 12,000 weights. The best strength depends on the data: two are compared."""

    weight_decay: float  # times the learning rate, per step
    feature_dropout: float  # share of input features dropped per member and step, so that no single one dominates


LIGHT: Final = Regularisation(weight_decay=3.0, feature_dropout=0.1)
STRICT: Final = Regularisation(weight_decay=10.0, feature_dropout=0.3)


@dataclass(frozen=True)
class FitResult:
    """Each member's parameters at its best validation, and that loss (M,); NaN without validation pairs."""

    parameters: Parameters
    validation_loss: Tensor
    steps: int


def fit(
    start: Parameters,
    sampler: StateSampler,
    stream: BatchStream,
    validation: PairBatch,
    regularisations: Sequence[Regularisation],
    config: FitConfig,
    should_cancel: Callable[[], bool],
) -> FitResult:
    """Train from `start` with one regularisation per member.

    Raises TrainingCancelled soon after `should_cancel()` returns True.
    """
    parameters = {name: tensor.clone() for name, tensor in start.items()}
    if config.monotone:
        clamp_weights(parameters)
    for tensor in parameters.values():
        tensor.requires_grad_()
    optimiser = torch.optim.Adam(list(parameters.values()), lr=config.learning_rate, foreach=True)
    decay = 1.0 - config.learning_rate * torch.tensor([each.weight_decay for each in regularisations])
    dropout = torch.tensor([each.feature_dropout for each in regularisations])
    best = _BestParameters(parameters, validation, config)
    steps = min(config.max_steps, max(config.min_steps, config.passes * stream.length))
    validation_interval = max(10, min(50, stream.length))
    best.update(parameters, sampler, 0)
    for step in range(1, steps + 1):
        if should_cancel():
            raise TrainingCancelled
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(_loss(parameters, sampler, stream.next(), dropout, config))
        optimiser.step()
        _decay_weights(parameters, decay)
        if config.monotone:
            clamp_weights(parameters)
        if step % validation_interval == 0 or step == steps:
            best.update(parameters, sampler, step)
            if best.converged:
                break
    return FitResult(best.parameters, best.loss, step)


def _decay_weights(parameters: Parameters, decay: Tensor) -> None:
    """Decoupled weight decay (AdamW, arXiv:1711.05101) with one factor (M,) per member; biases are not decayed."""
    with torch.no_grad():
        for name in WEIGHTS:
            weight = parameters[name]
            weight.mul_(decay.reshape(-1, *[1] * (weight.dim() - 1)))


def _loss(
    parameters: Parameters, sampler: StateSampler, batch: PairBatch, dropout: Tensor, config: FitConfig
) -> Tensor:
    states = sampler.sample(batch.rows, random=True) * sampler.dropout_mask(dropout)
    scores = sampler.pool(forward(parameters, states), batch.rows.shape[1])
    # Members share no parameters, so the gradient of the sum is the gradient of each member's loss.
    return (batch.loss(scores) + config.centring * scores.square().mean(1)).sum()


class _BestParameters:
    """Each member's parameters at its best validation so far."""

    def __init__(self, parameters: Parameters, validation: PairBatch, config: FitConfig) -> None:
        self._validation, self._config = validation, config
        self._has_pairs = validation.weight.sum(1) > 0
        members = len(self._has_pairs)
        self.parameters = {name: tensor.detach().clone() for name, tensor in parameters.items()}
        self.loss = torch.full((members,), float("nan"))
        self._validations_without_improvement = torch.zeros(members, dtype=torch.int64)

    def update(self, parameters: Parameters, sampler: StateSampler, step: int) -> None:
        """Validate now, and keep the parameters of the members that improved."""
        with torch.no_grad():
            states = sampler.sample(self._validation.rows, random=False)
            loss = self._validation.loss(sampler.pool(forward(parameters, states), self._validation.rows.shape[1]))
        improved = self.loss.isnan() | (loss < self.loss - 1e-4)
        improved = torch.where(self._has_pairs, improved, torch.tensor(step <= self._config.unvalidated_steps))
        self._validations_without_improvement = torch.where(improved, 0, self._validations_without_improvement + 1)
        self.loss = torch.where(improved & self._has_pairs, loss, self.loss)
        for name, tensor in parameters.items():
            self.parameters[name][improved] = tensor.detach()[improved]

    @property
    def converged(self) -> bool:
        """Whether every member has run out of patience."""
        patience = torch.where(self._has_pairs, self._config.patience, 1)
        return bool((self._validations_without_improvement >= patience).all())
