"""Reads the segments that an order names, and turns them into rows for the learner."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.who_acts import POLICY
from services.trainer.imitation.weights import segment_weights
from shared.contracts.epoch import EpochStart, ImitatedSegment
from shared.game.recording.segment import Segment, read_segment


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """Steps of judged play. A row is drawn with its chance; rows of one segment have equal chances."""

    observations: NDArray[np.float32]
    """(N, D), as the run's policy sees them."""
    actions: NDArray[np.int64]
    """(N,)."""
    chances: NDArray[np.float64]
    """(N,), their sum is 1."""


def read_demonstrations(order: EpochStart, read: Callable[[ImitatedSegment], bytes]) -> Demonstrations | None:
    """What the order imitates; None for nothing. `read` raises NotFound or DigestMismatch with the object's name.

    Raises ContractError for an archive that was recorded without the run's observation.
    """
    if order.imitation is None:
        return None
    weights = segment_weights(order.config.imitation, order.imitation)
    rows = [
        (*_steps(read_segment(read(one)), order.config.observation), weight)
        for one, weight in zip(order.imitation.segments, weights, strict=True)
        if weight > 0
    ]
    if not any(len(actions) for _, actions, _ in rows):
        return None
    chances = np.concatenate([np.full(len(actions), weight) for _, actions, weight in rows])
    return Demonstrations(
        np.concatenate([observations for observations, _, _ in rows]),
        np.concatenate([actions for _, actions, _ in rows]),
        chances / chances.sum(),
    )


def _steps(segment: Segment, observation: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Observations and actions of the steps in which the policy acted: what a planner did is assisted play."""
    acted = slice(None) if segment.actors is None else segment.actors == POLICY
    return segment.states_in(observation)[:-1][acted], segment.actions.astype(np.int64)[acted]
