"""The learner: PPO's clipped loss with two value heads and the RND predictor, and one fused optimiser.

Unlike RLlib's stock learner it has no KL term beside the clipping. It draws minibatches by indices, computes one norm
and one finiteness check per step instead of one per parameter, and keeps no metrics of RLlib's.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from torch import Tensor, nn

from services.trainer.imitation.loss import ImitationLoss
from services.trainer.rl.batch import (
    ADVANTAGES,
    CURIOSITY_TARGETS,
    GAME_TARGETS,
    WHITENED,
    BatchBuilder,
    Rows,
    minibatch_pieces,
    minibatch_rows,
    select,
)
from services.trainer.rl.learners.gradient_sum import GradientSum
from services.trainer.rl.learners.learner_device import on_device
from services.trainer.rl.learners.learner_replicas import LearnerReplicas
from services.trainer.rl.learners.minibatch_share import MinibatchShare, predicted_rows
from services.trainer.rl.module import CURIOSITY_VALUES, GAME_VALUES
from services.trainer.rl.networks.policy_network import BEGINS
from shared.contracts.learning.ppo import PpoConfig

HYPER = "hyper"
CURIOSITY = "curiosity"
DEVICE = "device"
OPTIONS = "options"
PREDICTOR_LOSS = "predictor_loss"
IMITATION_LOSS = "imitation_loss"
ROWS_PER_IMITATED = 4  # rows of a minibatch for each row of judged play: the best play is little, and repeats itself


class Minibatch(NamedTuple):
    """A minibatch under the name by which RLlib's learner asks for it."""

    policy_batches: dict[str, Rows]


class CuriosityPPOLearner(PPOTorchLearner):
    """PPO with curiosity. learner_config_dict holds `hyper`, `curiosity`, `device`, `shape` and `options`."""

    def build(self) -> None:
        """Build RLlib's learner and our batch builder."""
        super().build()
        settings = self.config.learner_config_dict
        self.hyper: PpoConfig = settings[HYPER]
        self.builder = BatchBuilder(
            self.hyper, tuple(settings["shape"]), settings[CURIOSITY], options=settings.get(OPTIONS, False)
        )
        predictor = self.module[DEFAULT_MODULE_ID].unwrapped().predictor
        apart = {id(parameter) for parameter in predictor}
        self._clipped = [[p for p in self._params.values() if id(p) not in apart], predictor]
        self.gradient_device = torch.device(settings.get(DEVICE, "cpu"))
        self.losses: dict[str, list[Tensor]] = {}
        self.skipped_steps = 0
        self.replicas: LearnerReplicas | None = None
        self.gradients: GradientSum | None = None
        self.imitation: ImitationLoss | None = None
        self._share: MinibatchShare | None = None  # None: alone
        self._losses_of_replicas: list[dict[str, float]] = []

    def share_with(self, replicas: LearnerReplicas) -> None:
        """Share every batch from now on with these replicas."""
        self.replicas, self.gradients = replicas, replicas.gradients

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
        if BEGINS in batch:
            begins = batch[BEGINS].numpy()
            order = minibatch_pieces(begins, size=size, epochs=num_epochs, shuffle=shuffle_batch_per_epoch)
        else:
            rows_of_batch = len(batch[ADVANTAGES])
            order = minibatch_rows(rows_of_batch, size=size, epochs=num_epochs, shuffle=shuffle_batch_per_epoch)
        every = list(order)
        if self.replicas is not None:
            self.replicas.begin(self, batch, every)
        network, optimizer = self.module[DEFAULT_MODULE_ID].unwrapped(), self.get_optimizer(DEFAULT_MODULE_ID)
        with on_device(self.gradient_device, network, optimizer, batch) as moved:
            if self.replicas is None:
                shares: Iterator[Rows] = (select(moved, rows) for rows in every)
            else:
                shares = self._shares(moved, every)
            for rows in shares:
                yield Minibatch({DEFAULT_MODULE_ID: rows})
        if self.replicas is not None:
            self._losses_of_replicas = self.replicas.finish()

    def _shares(self, columns: Mapping[str, Tensor], minibatches: Sequence[NDArray[np.int64]]) -> Iterator[Rows]:
        """This learner's rows of every minibatch."""
        gradients = self.gradients
        if gradients is None:
            raise RuntimeError("a learner shares a batch before it is connected")
        for rows in minibatches:
            share = MinibatchShare.of(rows, gradients.rank, gradients.ranks, self.hyper.predictor_share)
            self._share = share
            yield select(columns, share.rows)
        self._share = None

    def learn_share(self, columns: Mapping[str, Tensor], minibatches: Sequence[NDArray[np.int64]]) -> dict[str, float]:
        """In a replica: make the steps of all minibatches on its rows; return its part of the mean losses."""
        for rows in self._shares(columns, minibatches):
            self._update({DEFAULT_MODULE_ID: rows})
        return self._drain_losses()

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
        if self.imitation is not None:
            parts[IMITATION_LOSS] = self._imitation_loss(module_id, self.imitation, len(gain))
            loss = loss + self.imitation.coefficient * parts[IMITATION_LOSS]
        for name, part in parts.items():
            self.losses.setdefault(name, []).append(self._part_of_mean(name, part.detach()))
        return loss if self._share is None else loss * self._share.weight

    def _part_of_mean(self, name: str, loss: Tensor) -> Tensor:
        """What this learner's loss contributes to the mean over the whole minibatch."""
        share = self._share
        if share is None:
            return loss
        return loss * (share.predicted_weight if name == PREDICTOR_LOSS else share.weight)

    def _value_loss(self, values: Tensor, targets: Tensor) -> Tensor:
        """The error of the run's kind: `squared`, `huber`, or `clamped` without gradient above the value clip."""
        if self.hyper.value_loss == "huber":
            return nn.functional.huber_loss(values, targets) * 2  # equals the squared error below 1
        return (values - targets).square().clamp(max=self.hyper.value_clip).mean()

    def _curiosity_loss(
        self, module_id: str, batch: dict[str, Tensor], fwd_out: dict[str, Tensor], parts: dict[str, Tensor]
    ) -> Tensor:
        """Value error of the curiosity head; with RND also the prediction error on the minibatch's first rows."""
        value = self._value_loss(fwd_out[CURIOSITY_VALUES], batch[CURIOSITY_TARGETS])
        parts["curiosity_value_loss"] = value
        if WHITENED not in batch:
            return self.hyper.value_coefficient * value
        share, whitened = self._share, batch[WHITENED]
        kept = predicted_rows(len(whitened), self.hyper.predictor_share) if share is None else share.predicted
        predictor: Tensor = self.module[module_id].unwrapped().novelty(whitened[:kept]).mean()
        parts[PREDICTOR_LOSS] = predictor
        if share is not None:
            predictor = predictor * share.predictor_ratio
        return self.hyper.value_coefficient * value + predictor

    def _imitation_loss(self, module_id: str, imitation: ImitationLoss, rows: int) -> Tensor:
        """The policy's error on judged play, on a quarter as many rows as the minibatch has."""
        return imitation(self.module[module_id].unwrapped().pi, max(1, rows // ROWS_PER_IMITATED))

    def postprocess_gradients(self, gradients_dict: dict[str, Tensor]) -> dict[str, Tensor]:
        """Clipping happens once for all gradients, in `apply_gradients`."""
        return gradients_dict

    def apply_gradients(self, gradients_dict: dict[str, Tensor]) -> None:
        """Clip to the norm and step. A step with a non-finite gradient is skipped and counted; its losses do not count.

        The RND predictor has its own norm: a surprising batch must not shrink the policy's step. Several learners first
        add up their gradients, so all of them make the same step.
        """
        if self.gradients is not None:
            self.gradients.add_up(list(self._params.values()))
        norms = [nn.utils.clip_grad_norm_(group, self.hyper.gradient_norm, foreach=True) for group in self._clipped]
        if not all(bool(torch.isfinite(norm)) for norm in norms):
            self.skipped_steps += 1
            for parts in self.losses.values():
                del parts[-1:]  # it may be NaN or infinite, and so would be the mean of the batch
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
        figures = self._drain_losses()
        for other in self._losses_of_replicas:
            figures = {name: value + other.get(name, 0.0) for name, value in figures.items()}
        figures |= self.builder.figures | {"skipped_steps": float(self.skipped_steps)}
        self.builder.figures, self._losses_of_replicas = {}, []
        return figures

    def _drain_losses(self) -> dict[str, float]:
        """The mean of each loss over the steps that were made; without one, none."""
        found = {name: float(torch.stack(parts).mean()) for name, parts in self.losses.items() if parts}
        self.losses = {}
        return found
