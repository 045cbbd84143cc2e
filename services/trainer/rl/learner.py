"""The learner: PPO's clipped loss with two value heads and the RND predictor, and one fused optimiser.

Unlike RLlib's stock learner it has no KL term beside the clipping. It draws minibatches by indices, computes one norm
and one finiteness check per step instead of one per parameter, and keeps no metrics of RLlib's.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from torch import Tensor, nn

from services.trainer.rl.batch import (
    ADVANTAGES,
    CURIOSITY_TARGETS,
    GAME_TARGETS,
    WHITENED,
    BatchBuilder,
    Rows,
    minibatches,
)
from services.trainer.rl.module import CURIOSITY_VALUES, GAME_VALUES
from shared.contracts.ppo import PpoConfig

HYPER = "hyper"
CURIOSITY = "curiosity"


class Minibatch(NamedTuple):
    """A minibatch under the name by which RLlib's learner asks for it."""

    policy_batches: dict[str, Rows]


class CuriosityPPOLearner(PPOTorchLearner):
    """PPO with curiosity. Reads `hyper` and `curiosity` from the configuration's learner_config_dict."""

    def build(self) -> None:
        """Build RLlib's learner and our batch builder."""
        super().build()
        settings = self.config.learner_config_dict
        self.hyper: PpoConfig = settings[HYPER]
        self.builder = BatchBuilder(self.hyper, tuple(settings["shape"]), settings[CURIOSITY])
        predictor = self.module[DEFAULT_MODULE_ID].unwrapped().predictor
        apart = {id(parameter) for parameter in predictor}
        self._clipped = [[p for p in self._params.values() if id(p) not in apart], predictor]
        self.losses: dict[str, list[Tensor]] = {}
        self.skipped_steps = 0

    @property
    def done(self) -> float:
        """Share of the planned steps that are made, for the schedules."""
        return self.builder.done

    @done.setter
    def done(self, share: float) -> None:
        self.builder.done = share

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """One fused Adam over everything that learns."""
        parameters = [p for p in self.get_parameters(self._module[module_id]) if p.requires_grad]
        optimizer = torch.optim.Adam(parameters, lr=config.lr, eps=1e-5, fused=True)
        self.register_optimizer(
            module_id=module_id, optimizer=optimizer, params=parameters, lr_or_lr_schedule=config.lr
        )

    def _create_iterator_if_necessary(
        self,
        *,
        training_data: Any,
        num_total_minibatches: int = 0,
        num_epochs: int = 1,
        minibatch_size: int | None = None,
        shuffle_batch_per_epoch: bool = False,
        **kwargs: Any,
    ) -> Iterator[Minibatch]:
        """The minibatches of the sampled episodes, drawn without RLlib's work on every column."""
        batch = self.builder(rl_module=self.module, episodes=training_data.episodes)[DEFAULT_MODULE_ID]
        if not len(batch[ADVANTAGES]):  # a planner acted in every step: RLlib needs one minibatch all the same
            yield Minibatch({DEFAULT_MODULE_ID: batch})
            return
        size = minibatch_size or len(batch[ADVANTAGES])
        for rows in minibatches(batch, size=size, epochs=num_epochs, shuffle=shuffle_batch_per_epoch):
            yield Minibatch({DEFAULT_MODULE_ID: rows})

    def _update(self, batch: dict[str, Rows]) -> tuple[Any, Any, Any]:
        """One gradient step on a minibatch; RLlib's steps for several modules, devices and learners are left out."""
        rows = batch[DEFAULT_MODULE_ID]
        if not len(rows[ADVANTAGES]):
            return {DEFAULT_MODULE_ID: {}}, {DEFAULT_MODULE_ID: torch.zeros(())}, {}
        found = self.module[DEFAULT_MODULE_ID].unwrapped()._forward_train(rows)
        loss = self.compute_loss_for_module(module_id=DEFAULT_MODULE_ID, config=None, batch=rows, fwd_out=found)
        for optimizer in self._named_optimizers.values():
            optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.apply_gradients({})
        return {DEFAULT_MODULE_ID: found}, {DEFAULT_MODULE_ID: loss.detach()}, {}

    def _log_metrics(self, batch: Any) -> None:
        """Nothing: `drain_metrics` has the learner's figures, and RLlib's cost more than an optimiser's step."""

    def _log_steps_trained_metrics(self, batch: Any) -> None:
        """Nothing, as above."""

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: dict[str, Tensor], fwd_out: dict[str, Tensor]
    ) -> Tensor:
        """Policy loss + value losses - entropy bonus (+ RND predictor loss)."""
        hyper = self.hyper
        logits = torch.log_softmax(fwd_out[Columns.ACTION_DIST_INPUTS], -1)
        change = logits.gather(-1, batch[Columns.ACTIONS][:, None])[:, 0] - batch[Columns.ACTION_LOGP]
        ratio = change.exp()
        gain = batch[ADVANTAGES]
        policy = -torch.min(gain * ratio, gain * ratio.clamp(1 - hyper.clip, 1 + hyper.clip)).mean()
        value = self._value_loss(fwd_out[GAME_VALUES], batch[GAME_TARGETS])
        entropy = -(logits.exp() * logits).sum(-1).mean()
        parts = {"policy_loss": policy, "value_loss": value, "entropy": entropy, "kl": (ratio - 1 - change).mean()}
        loss = policy + hyper.value_coefficient * value - hyper.entropy_at(self.done) * entropy
        if CURIOSITY_TARGETS in batch:
            loss = loss + self._curiosity_loss(module_id, batch, fwd_out, parts)
        for name, part in parts.items():
            self.losses.setdefault(name, []).append(part.detach())
        return loss

    def _value_loss(self, values: Tensor, targets: Tensor) -> Tensor:
        """The error of the run's kind: `squared`, `huber`, or `clamped` without gradient above the value clip."""
        if self.hyper.value_loss == "huber":
            return nn.functional.huber_loss(values, targets) * 2  # equals the squared error below 1
        return (values - targets).square().clamp(max=self.hyper.value_clip).mean()

    def _curiosity_loss(
        self, module_id: str, batch: dict[str, Tensor], fwd_out: dict[str, Tensor], parts: dict[str, Tensor]
    ) -> Tensor:
        """Value error of the curiosity head; with RND also the prediction error on a random share of the states."""
        value = self._value_loss(fwd_out[CURIOSITY_VALUES], batch[CURIOSITY_TARGETS])
        parts["curiosity_value_loss"] = value
        if WHITENED not in batch:
            return self.hyper.value_coefficient * value
        kept = batch[WHITENED][: max(1, round(len(batch[WHITENED]) * self.hyper.predictor_share))]
        predictor: Tensor = self.module[module_id].unwrapped().novelty(kept).mean()
        parts["predictor_loss"] = predictor
        return self.hyper.value_coefficient * value + predictor

    def postprocess_gradients(self, gradients_dict: dict[str, Tensor]) -> dict[str, Tensor]:
        """Clipping happens once for all gradients, in `apply_gradients`."""
        return gradients_dict

    def apply_gradients(self, gradients_dict: dict[str, Tensor]) -> None:
        """Clip to the norm and step. A step with a non-finite gradient is skipped and counted.

        The RND predictor has its own norm: a surprising batch must not shrink the policy's step.
        """
        norms = [nn.utils.clip_grad_norm_(group, self.hyper.gradient_norm, foreach=True) for group in self._clipped]
        if not all(bool(torch.isfinite(norm)) for norm in norms):
            self.skipped_steps += 1
            return
        rate = self.hyper.learning_rate_at(self.done)
        for optimizer in self._named_optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()

    def drain_metrics(self) -> dict[str, float]:
        """Mean losses since the last call, the batch builder's metrics and the skipped steps; empty without a batch.

        The call clears them: while all runners are down RLlib learns nothing, and old metrics must not look new.
        """
        if not self.builder.figures:
            return {}
        figures = {name: float(torch.stack(parts).mean()) for name, parts in self.losses.items()}
        figures |= self.builder.figures | {"skipped_steps": float(self.skipped_steps)}
        self.losses, self.builder.figures = {}, {}
        return figures
