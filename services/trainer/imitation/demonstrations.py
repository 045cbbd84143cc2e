"""Turns what an order imitates into rows for the learner.

They come from judged segments, from trajectories of the state archive, from wins of the fights there, from ways back to
them, and from the policy's own passes of their legs.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from services.trainer.documents import StoredObject
from services.trainer.domain.backward import FIRST_SUCCESS, failures
from services.trainer.imitation.weights import return_weights, score_weights
from services.trainer.options.option_sets import strike_choices
from services.trainer.other_ways.fights import WonFight
from services.trainer.other_ways.leg_passes import LegPass, read_passes
from services.trainer.restarts.trajectory_player import TrajectoryRows
from shared.contracts.epoch import EpochStart, TrajectoryRef
from shared.game.recording.segment import POLICY, Segment, read_segment


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

    def mixed(self, other: "Demonstrations", share: float) -> "Demonstrations":
        """These rows and the others; a draw is one of the others with the probability `share`."""
        return Demonstrations(
            np.concatenate([self.observations, other.observations]),
            np.concatenate([self.actions, other.actions]),
            np.concatenate([self.chances * (1 - share), other.chances * share]),
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
    read: Callable[[StoredObject], bytes],
    trajectories: PlayedTrajectories,
) -> Demonstrations | None:
    """What the order imitates; None for nothing. Both raise with the name of an object that is damaged.

    Raises ContractError for a segment that was recorded without the run's observation.
    """
    kept = _kept(order, read)
    own = [one for one in kept if not one.back]
    archive = _all_of(_archived(order, trajectories), _other_ways(order, trajectories, own))
    shown = _all_of(_judged(order, read), archive)  # last, because each source gives half of the rows
    back = _recoveries(order, read, [one for one in kept if one.back])
    return shown if shown is None or back is None else shown.mixed(back, order.config.imitation.recovery_share)


def _all_of(*parts: Demonstrations | None) -> Demonstrations | None:
    return Demonstrations.joined([part for part in parts if part is not None])


def _judged(order: EpochStart, read: Callable[[StoredObject], bytes]) -> Demonstrations | None:
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
    played, stage = trajectories.rows(order.demonstrations.imitated), order.demonstrations.backward
    if stage is not None:
        weights = np.ones(len(played))  # of the one demonstration: there is nothing to compare it with
    else:
        weights = return_weights(order.config.imitation, [one.total for one in played])
    rows = [
        _Weighted(one.observations, one.actions, float(weight))
        for one, weight in zip(played, weights, strict=True)
        if weight > 0
    ]
    if stage is not None and not stage.arrived and strike_choices(order.config.options):
        rows += _strikes(trajectories.won_fights(stage.trajectory))
    return _rows(rows)


def _strikes(fights: Sequence[WonFight]) -> list[_Weighted]:
    """The wins of each fight: together they count as much as the demonstration's own steps of it.

    The demonstration holds buttons alone, so without these rows imitation would teach never to strike.
    """
    found = []
    for fight, wins in fights:
        choices = sum(len(win.course.actions) for win in wins)
        weight = (fight.end - fight.begin) / choices
        found += [_Weighted(win.course.observations, win.course.actions, weight) for win in wins]
    return found


def _kept(order: EpochStart, read: Callable[[StoredObject], bytes]) -> list[LegPass]:
    """The passes of the last epochs, and the ways back that were shown to their lost episodes."""
    references = [] if order.demonstrations is None else order.demonstrations.passes
    return [one for kept in references for one in read_passes(read(kept), kept.key)]


def _other_ways(order: EpochStart, trajectories: PlayedTrajectories, own: Sequence[LegPass]) -> Demonstrations | None:
    """Other ways on the legs of a curriculum than its demonstration's: won fights, and the policy's own passes.

    Those of a leg count by the share of the episodes that fail it.
    """
    if order.demonstrations is None or not order.demonstrations.imitated:
        return None
    stage = order.demonstrations.backward
    if stage is None or not stage.arrived:
        return None
    fought = [win.course for won in trajectories.won_fights(stage.trajectory) for win in won.wins]
    failed = failures(stage.success or [FIRST_SUCCESS] * len(stage.left))
    return _rows([*_by_leg(own, failed), *_by_leg(fought, failed)])


def _recoveries(
    order: EpochStart, read: Callable[[StoredObject], bytes], shown: Sequence[LegPass]
) -> Demonstrations | None:
    """Ways back to the trajectory: those found before the first epoch, and equally often those `shown` to the lost.

    Of each kind, each as often as any other: long ones are no better.
    """
    found = None if order.demonstrations is None else order.demonstrations.recoveries
    kinds = [[] if found is None else read_passes(read(found), found.key), shown]
    rows = [_rows([_Weighted(way.observations, way.actions, 1 / len(way.actions)) for way in ways]) for ways in kinds]
    return _all_of(*rows)


def _by_leg(passes: Sequence[LegPass], failed: Sequence[float]) -> list[_Weighted]:
    """The passes of a leg together have the leg's weight."""
    steps = Counter[int]()
    for one in passes:
        steps[one.leg] += len(one.actions)
    return [_Weighted(one.observations, one.actions, failed[one.leg] / steps[one.leg]) for one in passes]


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
