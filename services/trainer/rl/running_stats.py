"""Running mean and variance, merged batch by batch (Chan et al. 1979). Every checkpoint holds them bit for bit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


class RunningStats:
    """Mean and variance of all values so far, per feature, in float64: millions of steps must not drift."""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.count = 0.0
        self.mean: Doubles = np.zeros(shape)
        self.spread: Doubles = np.zeros(shape)  # sum of squared distances from the mean

    def update(self, values: NDArray[Any]) -> None:
        """Include a batch (N, *shape)."""
        number = len(values)
        if not number:
            return
        mean = values.mean(0, dtype=np.float64)
        shift = mean - self.mean
        total = self.count + number
        self.spread = self.spread + values.var(0, dtype=np.float64) * number + shift**2 * (self.count * number / total)
        self.mean = self.mean + shift * (number / total)
        self.count = total

    @property
    def std(self) -> Doubles:
        """Standard deviation; 1 where nothing has varied, so that a division is harmless."""
        if not self.count:
            return np.ones_like(self.mean)
        deviation = np.sqrt(self.spread / self.count)
        return np.where(deviation > 1e-8, deviation, 1.0)

    def state(self) -> dict[str, Any]:
        """Plain numbers for a checkpoint."""
        return {"count": self.count, "mean": self.mean.tolist(), "spread": self.spread.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.count = float(state["count"])
        self.mean = np.asarray(state["mean"], dtype=np.float64)
        self.spread = np.asarray(state["spread"], dtype=np.float64)
