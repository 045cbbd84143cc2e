"""What learning from pictures (pixels/v1) needs beside what learning from features does.

Pictures stay bytes until a network sees them: as numbers of 4 bytes, a batch of 4,096 of them would fill 570 MB.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

AT_ONCE = 64 * 1024 * 1024  # bytes of float32 observations that go through a network at once when nothing is learnt


class ByteScaling(nn.Module):
    """Bytes as 0..1. What is whitened is no bytes any more, and stays as it is."""

    def forward(self, seen: Tensor) -> Tensor:
        """Any shape; float32."""
        return seen / 255 if seen.dtype == torch.uint8 else seen


def as_network_input(observations: Any) -> NDArray[Any]:
    """One array of observations as networks take them: uint8 pictures, or float32 features."""
    array = np.asarray(observations)
    return array if array.dtype == np.uint8 else array.astype(np.float32, copy=False)


def novelty_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """What curiosity sees of an observation: all features, but only the newest of pictures (Burda et al. 2018)."""
    return shape if len(shape) == 1 else (1, *shape[1:])


def novelty_input(observations: NDArray[Any]) -> NDArray[Any]:
    """That part of observations (N, *shape)."""
    return observations if observations.ndim == 2 else observations[:, :1]


def inference_chunks(observations: Tensor) -> tuple[Tensor, ...]:
    """Observations (N, *shape) in parts that fit `AT_ONCE`."""
    rows = max(1, AT_ONCE // (4 * observations[0].numel()))
    return torch.split(observations, rows)
