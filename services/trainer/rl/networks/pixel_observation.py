"""Helps to learn from pictures (pixels/v1) as well as from features.

Pictures stay bytes until a network sees them: as float32, a batch of 4,096 pictures would fill 570 MB.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

CHUNK_BYTES = 64 * 1024 * 1024  # of float32 observations in one forward pass without gradients


class ByteScaling(nn.Module):
    """Scales bytes to 0..1. Whitened observations are float32 already and pass unchanged."""

    def forward(self, seen: Tensor) -> Tensor:
        """Float32 of the same shape."""
        return seen / 255 if seen.dtype == torch.uint8 else seen


def as_network_input(observations: Any) -> NDArray[Any]:
    """One array of observations as the networks take them: uint8 pictures or float32 features."""
    array = np.asarray(observations)
    return array if array.dtype == np.uint8 else array.astype(np.float32, copy=False)


def inference_chunks(observations: Tensor) -> tuple[Tensor, ...]:
    """Split observations (N, *shape) into chunks of at most `CHUNK_BYTES`."""
    rows = max(1, CHUNK_BYTES // (4 * observations[0].numel()))
    return torch.split(observations, rows)
