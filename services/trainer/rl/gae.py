"""Advantages and value targets of one stretch of an episode. Pure NumPy; knows neither RLlib nor torch.

An episode ends in three ways, and each has its own bootstrap: terminated (the state after it is worth 0), truncated
or cut by the end of a fragment (the state after it is worth what the critic says).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Floats = NDArray[np.float32]


def advantages(rewards: Floats, values: Floats, *, last_value: float, discount: float, gae_lambda: float) -> Floats:
    """Generalised advantage estimates, shape (T,).

    `rewards` and `values` are those of the T steps; `last_value` is the worth of the state after the last step:
    0 if it is terminal. Schulman et al. 2016, equation 16.
    """
    following = np.append(values[1:], np.float32(last_value))
    errors = rewards + discount * following - values
    return discounted_sums(errors, discount * gae_lambda)


def discounted_sums(values: Floats, discount: float) -> Floats:
    """Sum over the future, each step weighted by `discount` per step of distance; shape (T,)."""
    backwards = lfilter([1.0], [1.0, -discount], values[::-1].astype(np.float64))
    return np.ascontiguousarray(backwards[::-1], dtype=np.float32)


def running_returns(rewards: Floats, discount: float, carried: float) -> NDArray[np.float64]:
    """Discounted sums over the past, as a filter that goes on from `carried`; shape (T,)."""
    sums, _ = lfilter([1.0], [1.0, -discount], rewards.astype(np.float64), zi=[discount * carried])
    return np.asarray(sums, dtype=np.float64)
