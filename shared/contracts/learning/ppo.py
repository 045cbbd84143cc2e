"""How PPO and its curiosity bonus learn: the `ppo` block of a run's configuration.

Rewards are divided by the running deviation of their discounted sum before anything is learnt; errors and clips below
are in that unit. `profile` names a set of values; fields that are given replace the profile's.
"""

import math
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from shared.contracts.base import Configuration

CLAMPED_AT: Final = 10.0  # of the original system
ValueLoss = Literal["squared", "huber", "clamped"]
Profile = Literal["default", "seeds"]
SCHEDULED: Final = ("learning_rate", "entropy", "curiosity")
CuriosityView = Literal["cells/v1", "novelty/v1", "obs/v1"]

PROFILES: Final[dict[str, dict[str, object]]] = {
    "default": {},
    # What the original system documents, and what runs before 2026-11-23 were trained with but for the entropy.
    "seeds": {
        "discount": 0.99,
        "entropy": 0.01,
        "value_loss": "clamped",
        "epochs": 10,
        "minibatch": 512,
        "curiosity": 0.5,
        "curiosity_view": "obs/v1",
        "warm_up_steps": 0,
        "advantage_floor": 1e-4,
    },
}
EARLIER: Final[dict[str, object]] = {**PROFILES["seeds"], "profile": "seeds", "entropy": 0.02}
"""Of run records that were written before they held a `ppo` block."""
BEFORE_VIEWS: Final[dict[str, object]] = {"curiosity_view": "obs/v1", "advantage_floor": 1e-4}
"""Of `ppo` blocks that were written before they had these fields."""


class PpoConfig(Configuration):
    """PPO (Schulman et al. 2017) with two value heads and curiosity: visit counts or RND (Burda et al. 2018)."""

    profile: Profile = Field("default", description="`seeds`: the original system's values, for comparison")
    learning_rate: float = Field(3e-4, gt=0, le=1, description="learning rate of Adam")
    learning_rate_end: float | None = Field(
        None, ge=0, le=1, description="final value, reached linearly over the planned steps; null: constant"
    )
    discount: float = Field(
        0.99,
        gt=0,
        lt=1,
        description="per step; potential-based shaping uses the same one, so that the best policy stays the same",
    )
    gae_lambda: float = Field(
        0.95, ge=0, le=1, description="lambda of generalised advantage estimation: trades bias against variance"
    )
    advantage_floor: float = Field(
        0.5,
        gt=0,
        le=10,
        description="smallest divisor of advantages, else their standard deviation in the batch: without it, noise "
        "outweighs the entropy bonus once all known rewards are taken, and exploration ends",
    )
    clip: float = Field(0.2, gt=0, le=1, description="clipping range of an action's probability ratio")
    value_loss: ValueLoss = Field(
        "squared",
        description="`squared`; `huber`: linear beyond an error of 1; `clamped`: no gradient where the squared error "
        "exceeds 10, as the original system has it",
    )
    value_coefficient: float = Field(0.5, ge=0, le=100, description="weight of the value losses")
    entropy: float = Field(0.02, ge=0, le=10, description="weight of the entropy bonus; too low stops exploring")
    entropy_end: float | None = Field(
        None, ge=0, le=10, description="final value, reached linearly over the planned steps; null: constant"
    )
    epochs: int = Field(5, ge=1, le=100, description="passes over each batch")
    minibatch: int = Field(256, ge=16, le=1_000_000, description="steps per gradient; at most the size of the batch")
    reference_batch: int | None = Field(
        None,
        ge=64,
        le=10_000_000,
        description="batch_size that `minibatch` and the learning rates are meant for: a batch k times larger gets "
        "minibatches k times larger and sqrt(k) times the learning rate; null: they stay as they are",
    )
    gradient_norm: float = Field(
        0.5, gt=0, le=1_000, description="gradients are clipped to this norm; those of RND are clipped separately"
    )
    curiosity: float = Field(2.0, ge=0, le=100, description="weight of the curiosity advantage beside the game's")
    curiosity_end: float | None = Field(
        None, ge=0, le=100, description="final value, reached linearly over the planned steps; null: constant"
    )
    curiosity_discount: float = Field(0.99, gt=0, lt=1, description="per step, of the curiosity bonus")
    curiosity_view: CuriosityView = Field(
        "cells/v1",
        description="what counts as new: `cells/v1` pays 1/sqrt(visits) for a cell of place, button and possessions "
        "(docs/observation.md); the others pay RND's prediction error, `novelty/v1` on places, possessions and "
        "puzzles, `obs/v1` on everything; of pixels/v1 each sees the newest picture",
    )
    predictor_share: float = Field(
        0.25, gt=0, le=1, description="share of steps that train the RND predictor; with 1, novelty vanishes early"
    )
    warm_up_steps: int = Field(
        10_000, ge=0, le=10_000_000, description="first steps that only measure observations for RND, without a bonus"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_profile(cls, values: Any) -> Any:
        """Fill fields that are not given from the profile; an unknown profile is the field's own problem."""
        if not isinstance(values, dict):
            return values
        return {**PROFILES.get(str(values.get("profile", "default")), {}), **values}

    @model_validator(mode="after")
    def _falling(self) -> Self:
        for name in SCHEDULED:
            first, last = getattr(self, name), getattr(self, f"{name}_end")
            if last is not None and last > first:
                raise ValueError(f"{name}_end {last} is above {name} {first}: a schedule only falls")
        return self

    @property
    def value_clip(self) -> float:
        """The squared value error above which there is no gradient; infinite unless `value_loss` is `clamped`."""
        return CLAMPED_AT if self.value_loss == "clamped" else math.inf

    def minibatch_of(self, batch_size: int) -> int:
        """The minibatch for a batch: the whole batch if it is smaller than a minibatch."""
        return min(self.minibatch, batch_size)

    def scaled_to(self, batch_size: int) -> Self:
        """These values for a batch: in one larger than `reference_batch` the number of gradient steps stays the same.

        The learning rate of Adam grows with the square root of the minibatch (Malladi et al. 2022, arXiv 2205.10287).
        """
        if self.reference_batch is None or batch_size <= self.reference_batch:
            return self
        times = batch_size / self.reference_batch
        rates = {
            name: min(1.0, rate * math.sqrt(times))
            for name in ("learning_rate", "learning_rate_end")
            if (rate := getattr(self, name)) is not None
        }
        return self.model_copy(update={**rates, "minibatch": round(self.minibatch * times), "reference_batch": None})

    def learning_rate_at(self, done: float) -> float:
        """The learning rate after `done`, the share of the planned steps in [0, 1]."""
        return _scheduled(self.learning_rate, self.learning_rate_end, done)

    def entropy_at(self, done: float) -> float:
        """The weight of the entropy bonus after `done`, the share of the planned steps in [0, 1]."""
        return _scheduled(self.entropy, self.entropy_end, done)

    def curiosity_at(self, done: float) -> float:
        """The weight of the curiosity advantage after `done`, the share of the planned steps in [0, 1]."""
        return _scheduled(self.curiosity, self.curiosity_end, done)

    @property
    def scheduled(self) -> bool:
        """Whether a value changes over the planned steps."""
        return any(getattr(self, f"{name}_end") is not None for name in SCHEDULED)


def _scheduled(first: float, last: float | None, done: float) -> float:
    return first if last is None else first + (last - first) * min(max(done, 0.0), 1.0)
