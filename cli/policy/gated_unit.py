"""The gated recurrent unit of a policy with memory, in NumPy (Cho et al. 2014, as torch.nn.GRU computes it)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GatedUnit:
    """Weights (3M, F) and (3M, M) and biases (3M,): of the gates reset and update, then of the candidate."""

    input_weight: Floats
    input_bias: Floats
    memory_weight: Floats
    memory_bias: Floats

    @classmethod
    def of(cls, tensors: Mapping[str, Floats]) -> Self:
        """The unit among the tensors of a checkpoint."""
        names = ("weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0")
        return cls(*(tensors[f"pi.gru.{name}"] for name in names))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats]) -> Self:
        """The unit of a policy file; the inverse of `arrays`."""
        names = ("input_weight", "input_bias", "memory_weight", "memory_bias")
        return cls(*(arrays[f"gru_{name}"] for name in names))

    @property
    def size(self) -> int:
        """Values of the memory, M."""
        return int(self.memory_weight.shape[1])

    def step(self, features: Floats, memory: Floats) -> Floats:
        """The next memory (M,), from features (F,) and the present memory (M,)."""
        seen = np.split(self.input_weight @ features + self.input_bias, 3)
        kept = np.split(self.memory_weight @ memory + self.memory_bias, 3)
        reset, update = _sigmoid(seen[0] + kept[0]), _sigmoid(seen[1] + kept[1])
        candidate = np.tanh(seen[2] + reset * kept[2])
        result: Floats = (1 - update) * candidate + update * memory
        return result

    def arrays(self) -> dict[str, Any]:
        """The weights under their names in a policy file."""
        return {
            "gru_input_weight": self.input_weight,
            "gru_input_bias": self.input_bias,
            "gru_memory_weight": self.memory_weight,
            "gru_memory_bias": self.memory_bias,
        }


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)), np.float32)
