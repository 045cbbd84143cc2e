"""Plays a trajectory of the state archive again, in an environment like those of the run.

So it rebuilds what the policy saw before each action, exactly: the emulator is deterministic, and each part of the
trajectory begins as the episode did that played it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.backward import OPENING, leg_at
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.executor.outcome import GameView
from services.trainer.other_ways.courses import present_state
from services.trainer.other_ways.fights import FightMoment, WonFight, fights_of, wins_of
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.other_ways.recoveries import recoveries_of, trail_places
from services.trainer.other_ways.room_ways import RoomPlace
from services.trainer.other_ways.trail_map import TrailMap
from services.trainer.restarts.trajectory import Trajectory
from services.trainer.state_archive.cell import cell_of, may_restart
from services.trainer.state_archive.goal import ArchiveGoal, TrajectoryLeg, enemy_health_of, rises, rupees_of
from services.trainer.state_archive.legs import TrajectoryMoment, legs_of, with_trails
from shared.game.emulator.start import StartState, true_start
from shared.game.errors import ReplayMismatch
from shared.game.recording.segment import unpack_state

START_PREFIX: Final = "trajectory-"


@dataclass(frozen=True, slots=True)
class TrajectoryRows:
    """A trajectory as the policy would have seen it."""

    observations: NDArray[np.float32]
    """(T, D): before each action."""
    actions: NDArray[np.int64]
    """(T,)."""
    total: float
    """Sum of the rewards of the run's profile."""


class TrajectoryStart(NamedTuple):
    """A state on a trajectory, and its steps from the true start."""

    state: StartState
    step: int


class TrajectoryOutline(NamedTuple):
    """The legs of a trajectory, to its end, and the steps at which the hero has control."""

    legs: list[TrajectoryLeg]
    controlled: list[int]


class _Played(NamedTuple):
    """One step: what was seen before it, the action and its reward."""

    observation: NDArray[np.float32]
    action: int
    reward: float


class TrajectoryPlayer:
    """Plays trajectories of one run's archive in an emulator of its own."""

    def __init__(self, config: EnvConfig) -> None:
        """`config` is that of the run's environments."""
        self._session = GameSession(config)

    def rows(self, trajectory: Trajectory, name: str) -> TrajectoryRows:
        """Observations, actions and return. Raises ReplayMismatch, with the object's `name`, if it ends elsewhere."""
        played = self._play(trajectory, name)
        return TrajectoryRows(
            np.stack([step.observation for step in played]),
            np.array([step.action for step in played], np.int64),
            sum(step.reward for step in played),
        )

    def won_fights(self, trajectory: Trajectory, name: str, legs: Sequence[TrajectoryLeg]) -> list[WonFight]:
        """The trajectory's fights, won in other ways; those that no try won are left out. Raises as `rows` does.

        `legs` are those of its outline.
        """
        moments: list[FightMoment] = []

        def look(step: int) -> None:
            moments.append(FightMoment.of(self._session.state))

        look(len(self._play(trajectory, name, look)))
        fights = fights_of(moments)
        starts = self.starts(trajectory, name, {fight.begin: fight.begin for fight in fights})
        tried = [
            WonFight(fight, wins_of(self._session, fight, leg_at(legs, fight.end - 1), starts[fight.begin].state))
            for fight in fights
        ]
        return [one for one in tried if one.wins]

    def recoveries(self, trajectory: Trajectory, name: str, legs: Sequence[TrajectoryLeg]) -> list[LegPass]:
        """Ways back to places of the trajectory, from where the hero was led astray. Raises as `rows` does.

        `legs` are those of its outline.
        """
        trail = self.trail(trajectory, name)
        places = trail_places(trail.places, trail.ways)
        starts = self.starts(trajectory, name, {one.step: one.step for one in places})
        return [
            way
            for one in places
            for way in recoveries_of(self._session, one, leg_at(legs, one.step), trail.ways, starts[one.step].state)
        ]

    def trail(self, trajectory: Trajectory, name: str) -> TrailMap:
        """Where the trajectory goes. Raises as `rows` does."""
        places: dict[int, RoomPlace] = {}

        def look(step: int) -> None:
            if may_restart(self._session.state):
                places[step] = RoomPlace.of(GameView(self._session.state, self._session.image))

        self._play(trajectory, name, look)
        return TrailMap.of(places)

    def starts(self, trajectory: Trajectory, name: str, steps: Mapping[int, int]) -> dict[int, TrajectoryStart]:
        """The states in which episodes begin on the trajectory: for each point that of its step.

        Raises ReplayMismatch, with the object's `name`, if the trajectory ends elsewhere.
        """
        found: dict[int, TrajectoryStart] = {}
        points: dict[int, list[int]] = {}
        for point, at in steps.items():
            points.setdefault(at, []).append(point)

        def look(step: int) -> None:
            if step in points:
                here = replace(present_state(self._session, "on a trajectory"), opening=OPENING)
                found.update(
                    (point, TrajectoryStart(replace(here, name=start_name(point)), step)) for point in points[step]
                )

        self._play(trajectory, name, look)
        return found

    def outline(self, trajectory: Trajectory, name: str) -> TrajectoryOutline:
        """The outline of the trajectory. Its legs end where the hero has control. Raises as `starts` does."""
        moments: list[TrajectoryMoment] = []
        session = self._session

        def look(step: int) -> None:
            state = session.state
            if may_restart(state):
                cell = cell_of(state, session.counters.values)
                moments.append(TrajectoryMoment(step, cell, rupees_of(state), enemy_health_of(state)))

        self._play(trajectory, name, look)
        legs = legs_of(moments)
        begin = legs[-1].end if legs else 0
        if begin < trajectory.steps:
            gains = rises(legs[-1].goal.cell.counters, trajectory.cell.counters) if legs else ()
            legs.append(TrajectoryLeg(begin, trajectory.steps, ArchiveGoal(trajectory.cell), gains=gains))
        return TrajectoryOutline(with_trails(legs, moments), [moment.step for moment in moments])

    def close(self) -> None:
        """End the emulator."""
        self._session.close()

    def _play(
        self, trajectory: Trajectory, name: str, look: Callable[[int], None] = lambda step: None
    ) -> list[_Played]:
        """Play all parts; `look` is called before each step with its number."""
        session, start = self._session, true_start(self._session.game)
        played: list[_Played] = []
        for part in trajectory.parts:
            observation = session.begin(start, part.seed)
            for action in part.actions:
                look(len(played))
                before = observation.copy()
                result = session.step(action)
                played.append(_Played(before, action, result.reward))
                observation = result.observation
            start = present_state(session, "part of a trajectory")
        self._compare(trajectory, name)
        return played

    def _compare(self, trajectory: Trajectory, name: str) -> None:
        """Raise ReplayMismatch unless the RAM is that of the trajectory's end."""
        emulator = self._session.emulator
        actual = emulator.ram_hash()
        emulator.load(unpack_state(trajectory.state))
        if (expected := emulator.ram_hash()) != actual:
            raise ReplayMismatch(
                f"{name} does not lead to the state of entry {trajectory.entry}: it was played with another ROM or "
                "emulator, or it is damaged; start a new run",
                expected,
                actual,
            )


def start_name(point: int) -> str:
    """The name of the start state at a point of a trajectory."""
    return f"{START_PREFIX}{point}"


def point_of(name: str) -> int | None:
    """The point of the trajectory at which a start state of this name lies; None for any other start."""
    return int(name.removeprefix(START_PREFIX)) if name.startswith(START_PREFIX) else None
