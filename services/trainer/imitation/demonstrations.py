"""Turns what an order imitates into rows for the learner.

They come from judged segments, from trajectories of the state archive, and from the policy's own passes of their legs.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.backward import FIRST_SUCCESS, failures
from services.trainer.env.who_acts import POLICY
from services.trainer.imitation.weights import return_weights, score_weights
from services.trainer.restarts.epoch_restarts import stage_of
from services.trainer.restarts.fights import WonFight
from services.trainer.restarts.leg_passes import read_passes
from services.trainer.restarts.trajectory_player import TrajectoryRows
from shared.contracts.epoch import EpochStart, ImitatedSegment, PassesRef, TrajectoryRef
from shared.game.recording.segment import Segment, read_segment


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """Steps to imitate. A row is drawn with its chance; rows of one segment or trajectory have equal chances."""

    observations: NDArray[np.float32]
    """(N, D), as the run's policy sees them."""
    actions: NDArray[np.int64]
    """(N,)."""
    chances: NDArray[np.float64]
    """(N,), their sum is 1."""

    @classmethod
    def joined(cls, parts: Sequence["Demonstrations"]) -> "Demonstrations | None":
        """All parts, each drawn equally often; None without a part."""
        if not parts:
            return None
        return cls(
            np.concatenate([part.observations for part in parts]),
            np.concatenate([part.actions for part in parts]),
            np.concatenate([part.chances for part in parts]) / len(parts),
        )


class _Weighted(NamedTuple):
    """The steps of one segment or trajectory, and the weight of each."""

    observations: NDArray[np.float32]
    actions: NDArray[np.int64]
    weight: float


class PlayedTrajectories(Protocol):
    """Plays trajectories of the archive; restarts.trajectories.ArchiveTrajectories is one."""

    def rows(self, references: Sequence[TrajectoryRef]) -> list[TrajectoryRows]:
        """What the policy would have seen and done on these trajectories."""
        ...

    def won_fights(self, reference: TrajectoryRef) -> list[WonFight]:
        """The trajectory's fights, won in other ways."""
        ...


def read_demonstrations(
    order: EpochStart,
    read: Callable[[ImitatedSegment], bytes],
    trajectories: PlayedTrajectories,
    read_own: Callable[[PassesRef], bytes],
) -> Demonstrations | None:
    """What the order imitates; None for nothing. All three raise with the name of an object that is damaged.

    Raises ContractError for a segment that was recorded without the run's observation.
    """
    found = [_judged(order, read), _archived(order, trajectories)]
    stage = stage_of(order)
    if stage is not None and order.config.imitation.of_archive:
        failed = failures(stage.success or [FIRST_SUCCESS] * len(stage.left))
        found += [_fought(trajectories.won_fights(stage.trajectory), failed), _own(order, read_own, failed)]
    return Demonstrations.joined([part for part in found if part is not None])


def _judged(order: EpochStart, read: Callable[[ImitatedSegment], bytes]) -> Demonstrations | None:
    if order.imitation is None:
        return None
    segments = order.imitation.segments
    weights = score_weights(order.config.imitation, [one.score for one in segments], order.imitation.baseline)
    return _rows(
        [
            _Weighted(*_steps(read_segment(read(one)), order.config.observation), float(weight))
            for one, weight in zip(segments, weights, strict=True)
            if weight > 0
        ]
    )


def _archived(order: EpochStart, trajectories: PlayedTrajectories) -> Demonstrations | None:
    if order.demonstrations is None or not order.demonstrations.imitated:
        return None
    played = trajectories.rows(order.demonstrations.imitated)
    if order.demonstrations.backward is not None:
        weights = np.ones(len(played))  # of the one demonstration: there is nothing to compare it with
    else:
        weights = return_weights(order.config.imitation, [one.total for one in played])
    return _rows(
        [
            _Weighted(one.observations, one.actions, float(weight))
            for one, weight in zip(played, weights, strict=True)
            if weight > 0
        ]
    )


def _fought(fights: Sequence[WonFight], failed: Sequence[float]) -> Demonstrations | None:
    """The demonstration's fights, won in other ways: each counts by the share of the episodes that fail its leg."""
    steps = [sum(len(won.actions) for won in wins) for _, _, wins in fights]
    return _rows(
        [
            _Weighted(won.observations, won.actions, failed[leg] / total)
            for (_, leg, wins), total in zip(fights, steps, strict=True)
            for won in wins
        ]
    )


def _own(order: EpochStart, read: Callable[[PassesRef], bytes], failed: Sequence[float]) -> Demonstrations | None:
    """The policy's own passes of legs: those of a leg together count by the share of the episodes that fail it."""
    if order.demonstrations is None:
        return None
    passes = [one for kept in order.demonstrations.passes for one in read_passes(read(kept), kept.key)]
    steps = Counter[int]()
    for one in passes:
        steps[one.leg] += len(one.actions)
    return _rows([_Weighted(one.observations, one.actions, failed[one.leg] / steps[one.leg]) for one in passes])


def _rows(parts: list[_Weighted]) -> Demonstrations | None:
    if not any(len(part.actions) for part in parts):
        return None
    chances = np.concatenate([np.full(len(part.actions), part.weight) for part in parts])
    return Demonstrations(
        np.concatenate([part.observations for part in parts]),
        np.concatenate([part.actions for part in parts]),
        chances / chances.sum(),
    )


def _steps(segment: Segment, observation: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Observations and actions of the steps in which the policy acted: what a planner did is assisted play."""
    acted = slice(None) if segment.actors is None else segment.actors == POLICY
    return segment.states_in(observation)[:-1][acted], segment.actions.astype(np.int64)[acted]
