"""The training loop: Bradley-Terry on soft labels, all members at once, each stopped by its own validation fold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from services.rewardmodel.errors import TrainingCancelled
from services.rewardmodel.training.batches import Batch, BatchStream
from services.rewardmodel.training.ensemble import Parameters, score
from services.rewardmodel.training.state_sampler import StateSampler


@dataclass(frozen=True)
class FitConfig:
    """How long and how fast to train."""

    learning_rate: float = 1e-3
    centring: float = 0.01  # of squared segment scores: Bradley-Terry leaves their offset free
    passes: int = 12  # over all pairs, at most
    min_steps: int = 400
    max_steps: int = 2_000  # bounds the time that an epoch waits for its reward model
    patience: int = 8  # validations without improvement
    unvalidated_steps: int = 150  # for a member without validation pairs; more would fit the noise of few ratings
    strata: int = 8


@dataclass(frozen=True)
class Regularisation:
    """What keeps few ratings from fitting 12,000 weights. Which is right depends on the data, so two are tried."""

    weight_decay: float  # times the learning rate, per step
    hidden: float  # share of features hidden from a member in a step: no single one may decide


LIGHT: Final = Regularisation(3.0, 0.1)
STRICT: Final = Regularisation(10.0, 0.3)


@dataclass(frozen=True)
class FitResult:
    """Parameters at each member's best validation, and that loss (M,); NaN where there were no validation pairs."""

    parameters: Parameters
    validation_loss: Tensor
    steps: int


def fit(
    start: Parameters,
    sampler: StateSampler,
    stream: BatchStream,
    validation: Batch,
    regularisations: Sequence[Regularisation],
    config: FitConfig,
    should_cancel: Callable[[], bool],
) -> FitResult:
    """Train from `start`, one restraint per member; raise Interrupted soon after `interrupted()` turned true."""
    parameters = {name: tensor.clone().requires_grad_() for name, tensor in start.items()}
    optimiser = torch.optim.Adam(list(parameters.values()), lr=config.learning_rate, foreach=True)
    kept = 1.0 - config.learning_rate * torch.tensor(
        [regularisation.weight_decay for regularisation in regularisations]
    )
    hidden = torch.tensor([regularisation.hidden for regularisation in regularisations])
    best = _Best(parameters, validation, config)
    steps = min(config.max_steps, max(config.min_steps, config.passes * stream.length))
    every = max(10, min(50, stream.length))
    best.validate(parameters, sampler, 0)
    for step in range(1, steps + 1):
        if should_cancel():
            raise TrainingCancelled("a reward model training was given up; its epoch will be trained again")
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(_loss(parameters, sampler, stream.next(), hidden, config))
        optimiser.step()
        _decay(parameters, kept)
        if step % every == 0 or step == steps:
            best.validate(parameters, sampler, step)
            if best.converged:
                break
    return FitResult(best.parameters, best.loss, step)


def _decay(parameters: Parameters, kept: Tensor) -> None:
    """Shrink the weights (not the biases) of each member: AdamW's decoupled decay, with a rate per member."""
    with torch.no_grad():
        for name in ("hidden1_weight", "hidden2_weight", "value_weight"):
            weight = parameters[name]
            weight.mul_(kept.reshape(-1, *[1] * (weight.dim() - 1)))


def _loss(parameters: Parameters, sampler: StateSampler, batch: Batch, hidden: Tensor, config: FitConfig) -> Tensor:
    inputs = sampler.inputs(batch.rows, sampled=True) * sampler.hidden(hidden)
    scores = sampler.pool(score(parameters, inputs), batch.rows.shape[1])
    # Members share nothing, so the gradient of the sum is the gradient of each.
    return (batch.loss(scores) + config.centring * scores.square().mean(1)).sum()


class _Best:
    """Each member's parameters at its best validation so far."""

    def __init__(self, parameters: Parameters, validation: Batch, config: FitConfig) -> None:
        self._validation, self._config = validation, config
        self._measured = validation.weight.sum(1) > 0
        members = len(self._measured)
        self.parameters = {name: tensor.detach().clone() for name, tensor in parameters.items()}
        self.loss = torch.full((members,), float("nan"))
        self._idle = torch.zeros(members, dtype=torch.int64)

    def validate(self, parameters: Parameters, sampler: StateSampler, step: int) -> None:
        """Measure now and keep what has improved."""
        with torch.no_grad():
            inputs = sampler.inputs(self._validation.rows, sampled=False)
            loss = self._validation.loss(sampler.pool(score(parameters, inputs), self._validation.rows.shape[1]))
        better = self.loss.isnan() | (loss < self.loss - 1e-4)
        better = torch.where(self._measured, better, torch.tensor(step <= self._config.unvalidated_steps))
        self._idle = torch.where(better, 0, self._idle + 1)
        self.loss = torch.where(better & self._measured, loss, self.loss)
        for name, tensor in parameters.items():
            self.parameters[name][better] = tensor.detach()[better]

    @property
    def converged(self) -> bool:
        """Whether no member has improved for a while."""
        limit = torch.where(self._measured, self._config.patience, 1)
        return bool((self._idle >= limit).all())
