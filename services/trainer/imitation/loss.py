"""The loss that imitates judged play: the policy's cross entropy on rows drawn by their chances."""

import torch
from torch import Tensor, nn

from services.trainer.imitation.demonstrations import Demonstrations


class ImitationLoss:
    """Draws rows and scores the policy on them. The draws follow torch's generator, which a checkpoint keeps."""

    def __init__(self, demonstrations: Demonstrations, coefficient: float) -> None:
        self.coefficient = coefficient
        self._observations = torch.from_numpy(demonstrations.observations)
        self._actions = torch.from_numpy(demonstrations.actions)
        self._bounds = torch.from_numpy(demonstrations.chances.cumsum())

    def __call__(self, policy: nn.Module, rows: int) -> Tensor:
        """Mean negative log-likelihood of `rows` drawn actions."""
        found = torch.searchsorted(self._bounds, torch.rand(rows, dtype=self._bounds.dtype))
        drawn = found.clamp(max=len(self._actions) - 1)  # the last bound may round to less than 1
        device = next(policy.parameters()).device
        seen, actions = self._observations[drawn].to(device), self._actions[drawn].to(device)
        return nn.functional.cross_entropy(policy(seen), actions)
