"""The policy behind one port: a network that sees the observation alone, or one that also remembers (`gru/v1`).

A memory is one row of floats for each environment, (N, M); M is 0 without memory. It is 0 at the start of an episode.
"""

from collections.abc import Mapping
from typing import Final, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from torch import Tensor, nn

MEMORY: Final = "memory"
"""Column: the memory before each step, (n, M). Absent without memory."""
BEGINS: Final = "begins"
"""Column: whether a row is the first one of a piece, (n,)."""
MEMORY_SIZE: Final = 128  # units of the GRU
PIECE_STEPS: Final = 32  # steps through which gradients flow back; longer pieces take longer and rarely help PPO


class PolicyNetwork(Protocol):
    """What runners, learner and evaluation need of a policy."""

    memory_size: int

    def step(self, observations: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (N, A) and the next memory (N, M), from observations (N, *shape) and the present memory (N, M)."""
        ...

    def rows(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Logits (n, A) of a batch's rows. With memory, rows are whole pieces, each in the order of its steps."""
        ...


class FeedForwardPolicy(nn.Sequential):
    """Sees the observation alone."""

    memory_size = 0

    def step(self, observations: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and the memory as it was: it has no columns."""
        return self(observations), memory

    def rows(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Logits of each row."""
        logits: Tensor = self(batch[Columns.OBS])
        return logits


class RecurrentPolicy(nn.Module):
    """A gated recurrent unit (Cho et al. 2014) beside the features: what needs no memory is learnt without it.

    Gradients flow back through the steps of a piece. A piece begins with the memory that the policy had when it
    played, as stored states of Kapturowski et al. 2019 (R2D2); a batch is too young for them to be stale.
    """

    memory_size = MEMORY_SIZE

    def __init__(self, front: nn.Sequential, width: int, head: nn.Linear) -> None:
        """`front` maps observations to `width` features; `head` maps `width + MEMORY_SIZE` values to logits."""
        super().__init__()
        self.front, self.head = front, head
        self.gru = nn.GRU(width, MEMORY_SIZE, batch_first=True)
        for name, parameter in self.gru.named_parameters():
            if name.startswith("weight"):
                nn.init.orthogonal_(parameter)
            else:
                nn.init.zeros_(parameter)

    def step(self, observations: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and the next memory."""
        features = self.front(observations)
        found, _ = self.gru(features[:, None], memory[None])
        return self.head(torch.cat((features, found[:, 0]), -1)), found[:, 0]

    def rows(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Logits of each row; the memory of a piece's first row goes through the piece."""
        features, begins = self.front(batch[Columns.OBS]), batch[BEGINS]
        first = begins.nonzero()[:, 0]
        piece = begins.cumsum(0) - 1
        place = torch.arange(len(begins), device=begins.device) - first[piece]
        padded = features.new_zeros(len(first), int(place.max()) + 1, features.shape[-1])
        padded[piece, place] = features
        found, _ = self.gru(padded, batch[MEMORY][first][None])
        logits: Tensor = self.head(torch.cat((features, found[piece, place]), -1))
        return logits


def first_memory(policy: PolicyNetwork, environments: int) -> Tensor:
    """The memory (N, M) at the start of an episode in each environment."""
    return torch.zeros(environments, policy.memory_size)


def forgotten(memory: Tensor, ended: NDArray[np.bool_]) -> Tensor:
    """The memory, 0 where an episode has `ended` (N,)."""
    return memory.masked_fill(torch.from_numpy(ended)[:, None], 0.0)


def piece_begins(steps: int) -> NDArray[np.bool_]:
    """Which steps of a chunk begin a piece, (T,): each piece has PIECE_STEPS, the last one may have fewer."""
    return np.equal(np.arange(steps) % PIECE_STEPS, 0)


def rows_of_pieces(begins: NDArray[np.bool_], pieces: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of these pieces, one piece after the other."""
    bounds = np.append(np.flatnonzero(begins), len(begins))
    return np.concatenate([np.arange(bounds[piece], bounds[piece + 1]) for piece in pieces])
