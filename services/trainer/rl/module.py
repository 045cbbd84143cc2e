"""The networks: policy, a critic with one head per reward stream, and curiosity. Env runners hold only the policy.

The module samples actions itself and returns their log-probabilities, which avoids RLlib's generic distribution code on
every step.
"""

from collections.abc import Sequence
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor, nn

from services.trainer.rl.curiosity.novelty_view import NoveltyView
from services.trainer.rl.curiosity.visit_counts import VisitCounts
from services.trainer.rl.networks.pixel_observation import ByteScaling
from services.trainer.rl.networks.policy_network import MEMORY, MEMORY_SIZE, FeedForwardPolicy, RecurrentPolicy
from shared.game.observation import cells

HIDDEN = (256, 256)  # widths of policy and critic
EMBEDDING = 64  # width of the RND embedding
LEARNER_ONLY = ("critic", "rnd_target", "rnd_predictor", "visits")
GAME_VALUES = "game_values"
CURIOSITY_VALUES = "curiosity_values"


class ActorCriticModule(TorchRLModule, InferenceOnlyAPI, ValueFunctionAPI):
    """Separate networks for the policy, the values and the novelty of a state."""

    def setup(self) -> None:
        """Build the networks that this process needs. `model_config`: `hidden` widths, whether the policy has a
        `memory`, and the view of `curiosity` or None without it."""
        hidden = tuple(self.model_config["hidden"])
        shape = tuple(self.observation_space.shape)
        self.pi = build_policy(shape, hidden, self.action_space.n, memory=self.model_config.get("memory", False))
        if self.inference_only:
            return
        self.critic = build_network(shape, hidden, 1 if self.model_config["curiosity"] is None else 2)
        if self.model_config["curiosity"] == cells.VERSION:
            self.visits = VisitCounts(shape)
        elif self.model_config["curiosity"] is not None:
            shape = NoveltyView(shape, self.model_config["curiosity"]).shape
            self.rnd_target = build_network(shape, (128,), EMBEDDING, activation=nn.ReLU).requires_grad_(False)
            self.rnd_predictor = build_network(shape, (128, 128), EMBEDDING, activation=nn.ReLU)

    @property
    def predictor(self) -> list[nn.Parameter]:
        """Parameters of the RND predictor; empty without RND."""
        return list(self.rnd_predictor.parameters()) if hasattr(self, "rnd_predictor") else []

    def get_non_inference_attributes(self) -> list[str]:
        """Networks that never travel to env runners."""
        return [name for name in LEARNER_ONLY if hasattr(self, name)]

    @torch.inference_mode()
    def _forward_exploration(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        found, memory = self._step(batch)
        logits = torch.log_softmax(found, -1)
        # Gumbel-max: adding -log(Exp(1)) noise and taking the best samples exactly from the softmax.
        actions = (logits - torch.empty_like(logits).exponential_().log_()).argmax(-1)
        logp = logits.gather(-1, actions[:, None])[:, 0]
        return {Columns.ACTIONS: actions, Columns.ACTION_LOGP: logp, **memory}

    @torch.inference_mode()
    def _forward_inference(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        logits, memory = self._step(batch)
        return {Columns.ACTIONS: logits.argmax(-1), **memory}

    def _step(self, batch: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits, and the next memory of a policy that has one."""
        if not self.pi.memory_size:
            return self.pi(batch[Columns.OBS]), {}
        logits, memory = self.pi.step(batch[Columns.OBS], batch[MEMORY])
        return logits, {MEMORY: memory}

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Tensor]:
        return {Columns.ACTION_DIST_INPUTS: self.pi.rows(batch), **self.values(batch[Columns.OBS])}

    def values(self, observations: Tensor) -> dict[str, Tensor]:
        """Value of every reward stream, each (N,): the game's, and curiosity's if it is on."""
        heads = self.critic(observations).unbind(-1)
        return dict(zip((GAME_VALUES, CURIOSITY_VALUES), heads, strict=False))

    def compute_values(self, batch: dict[str, Any], embeddings: Any | None = None) -> Tensor:
        """Value of the game reward, shape (N,)."""
        return self.values(batch[Columns.OBS])[GAME_VALUES]

    def novelty(self, whitened: Tensor) -> Tensor:
        """Mean squared error of the predictor on whitened observations, shape (N,)."""
        errors: Tensor = self.rnd_predictor(whitened) - self.rnd_target(whitened)
        return errors.square().mean(-1)


def build_policy(
    shape: tuple[int, ...], hidden: Sequence[int], actions: int, *, memory: bool
) -> FeedForwardPolicy | RecurrentPolicy:
    """The policy; its small last gain makes the first one nearly uniform."""
    if not memory:
        return FeedForwardPolicy(*build_network(shape, hidden, actions, gain=0.01))
    front = build_network(shape, hidden[:-1], hidden[-1], gain=2**0.5)
    head = orthogonal_init(nn.Linear(hidden[-1] + MEMORY_SIZE, actions), 0.01)
    return RecurrentPolicy(nn.Sequential(*front, nn.Tanh()), hidden[-1], head)


def build_network(
    shape: tuple[int, ...],
    hidden: Sequence[int],
    outputs: int,
    *,
    gain: float = 1.0,
    activation: type[nn.Module] = nn.Tanh,
) -> nn.Sequential:
    """A multi-layer perceptron on features; on pictures (channels first), with convolutions before it."""
    if len(shape) == 1:
        front, width = nn.Sequential(), shape[0]
    else:
        front, width = convolutions(shape)
    layers: list[nn.Module] = [*front]
    for size in hidden:
        layers += [orthogonal_init(nn.Linear(width, size), 2**0.5), activation()]
        width = size
    return nn.Sequential(*layers, orthogonal_init(nn.Linear(width, outputs), gain))


def convolutions(shape: tuple[int, ...]) -> tuple[nn.Sequential, int]:
    """The three convolutions of Mnih et al. 2015, and the number of features they produce."""
    front = nn.Sequential(
        ByteScaling(),
        nn.Conv2d(shape[0], 32, 8, stride=4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, stride=2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, stride=1),
        nn.ReLU(),
        nn.Flatten(),
    )
    with torch.no_grad():
        width = int(front(torch.zeros(1, *shape)).shape[1])
    return front, width


def orthogonal_init(layer: nn.Linear, gain: float) -> nn.Linear:
    """Orthogonal weights and zero bias. A small gain on the last policy layer makes the first policy uniform."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer
