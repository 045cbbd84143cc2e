"""Advantages of one chunk of an episode (Schulman et al. 2016). Pure NumPy: neither RLlib nor torch.

A chunk ends in one of three ways: terminated (the next state is worth 0), truncated, or cut by the end of a fragment
(the critic values the next state).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Floats = NDArray[np.float32]


def advantages(rewards: Floats, values: Floats, *, last_value: float, discount: float, gae_lambda: float) -> Floats:
    """Generalised advantage estimates, shape (T,).

    `rewards` and `values` have shape (T,); `last_value` is the value of the state after the last step, 0 if it is
    terminal. Schulman et al. 2016, equation 16.
    """
    following = np.append(values[1:], np.float32(last_value))
    errors = rewards + discount * following - values
    return discounted_sums(errors, discount * gae_lambda)


def discounted_sums(values: Floats, discount: float) -> Floats:
    """Sum over the future, each step weighted by `discount` per step of distance; shape (T,)."""
    backwards = lfilter([1.0], [1.0, -discount], values[::-1].astype(np.float64))
    return np.ascontiguousarray(backwards[::-1], dtype=np.float32)


def running_returns(rewards: Floats, discount: float, carried: float) -> NDArray[np.float64]:
    """Discounted sums over the past, continued from the sum `carried`; shape (T,)."""
    sums, _ = lfilter([1.0], [1.0, -discount], rewards.astype(np.float64), zi=[discount * carried])
    return np.asarray(sums, dtype=np.float64)
