"""How long an episode of the backward curriculum may take.

From a mastered leg, or from the true start, it goes on while it reaches the goals of mastered legs. A leg that is not
mastered would take the most steps and seldom succeed; it has episodes of its own, from near its end. An episode from
the true start that has lost the way is led back, once on each leg.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from services.trainer.domain.backward import longest_episode
from services.trainer.env.game_session import GameSession
from services.trainer.other_ways.lost_episodes import LostMoment
from services.trainer.restarts.passed_legs import PassedLegs
from services.trainer.restarts.trail import Trail
from services.trainer.state_archive.cell import cell_of, coarse_tile, may_restart
from services.trainer.state_archive.goal import TrajectoryLeg, enemy_health_of, rupees_of
from shared.game.decoding.state import RoomKey

AFTER_GOAL: Final = 20  # steps of an episode that does not go on: what ends with the goal is still seen


class LegProgress(NamedTuple):
    """What an episode passed on a trajectory: goals of its legs, and points of their trails."""

    goals: int = 0
    points: int = 0

    def plus(self, other: "LegProgress") -> "LegProgress":
        """Both together."""
        return LegProgress(self.goals + other.goals, self.points + other.points)


NO_PROGRESS: Final = LegProgress()


class LegLimits:
    """The limits of one episode. Without legs it has none but its start's."""

    def __init__(self, legs: Sequence[TrajectoryLeg], first: int | None, session: GameSession, begin: int = 0) -> None:
        """`first` is the leg on which the episode begins, at the trajectory's step `begin`; None: at the true start.

        An episode of a leg that is not mastered ends with that leg's goal: its steps go into more such episodes.
        """
        self._legs, self._first, self._legs_passed = legs, first, PassedLegs(legs, first or 0)
        self.passed = NO_PROGRESS
        """What the episode has passed so far."""
        self.lost: LostMoment | None = None
        """Set by a look at which the episode has died or lost the way."""
        self._goes_on = first is None or legs[first].mastered
        self._trail = Trail(legs, self.next_leg, begin)
        self._deaths = session.detectors.deaths
        self._lost_on: int | None = None  # the leg on which it has lost the way
        self._seen: tuple[RoomKey, tuple[int, int], int, int, bytes, bool] | None = None
        if legs and first is None:
            session.allow(longest_episode(legs[0].end))

    @property
    def next_leg(self) -> int:
        """The number of the leg to do next: all before it are passed."""
        return self._legs_passed.next_leg

    @property
    def passed_first(self) -> bool:
        """Whether the episode began on a leg, and has passed it."""
        return self._first is not None and self.next_leg > self._first

    def look(self, session: GameSession) -> LegProgress:
        """What the last step passed. For a goal the episode is granted the time of the next leg, for a point of the
        trail that of the rest of its leg: a fight may last, and an episode that has lost the way passes no point.

        On the same coarse tile, with the same money, enemies, counters and control, a look costs a comparison.
        """
        self.lost = None
        if self.next_leg >= len(self._legs):
            return NO_PROGRESS
        if session.steps_left == 1 and self._plays_on and self._lost_on != self.next_leg:
            self._lost_on = self.next_leg
            self._lose_way(session)
        state, rupees = session.state, rupees_of(session.state)
        control, enemy_health = may_restart(state), enemy_health_of(state)
        seen = state.key, coarse_tile(state.x, state.y), rupees, enemy_health, session.counters.packed, control
        if seen == self._seen:
            return NO_PROGRESS
        self._seen = seen
        cell = cell_of(state, session.counters.values)
        if session.detectors.deaths > self._deaths and control:
            self._deaths = session.detectors.deaths
            self._lose_way(session)
        points = self._trail.look(self.next_leg, (cell.group, cell.room, cell.column, cell.row), enemy_health)
        goals = self._legs_passed.enter(cell, rupees, control=control)
        if goals:
            session.allow(self._steps_of_next_leg())
        elif points and self._plays_on:
            session.allow(longest_episode(self._legs[self.next_leg].end - self._trail.step))
        progress = LegProgress(goals, points)
        self.passed = self.passed.plus(progress)
        return progress

    def _lose_way(self, session: GameSession) -> None:
        """The episode has died or lost the way: from the true start it may find back from where it is now."""
        leg, step = self._legs[self.next_leg], self._trail.step
        begin = step if leg.begin <= step < leg.end else leg.begin
        rupees = rupees_of(session.state)
        ahead = self._legs[self.next_leg :]
        gained = (one.end for one in ahead if any(one.gains) or one.goal.rupees > rupees)
        hits = {point.place[:2]: point.enemy_health for point in leg.trail if point.enemy_health is not None}
        self.lost = LostMoment(self.next_leg, begin, next(gained, ahead[-1].end), hits)
        if self._first is None:
            session.allow(longest_episode(self._trail.turn_back(self.next_leg, session.state.key)))

    @property
    def _plays_on(self) -> bool:
        """Whether the episode is on the leg it began on, or goes on through the next one."""
        return self.next_leg == (self._first or 0) or (self._goes_on and self._legs[self.next_leg].mastered)

    def _steps_of_next_leg(self) -> int:
        if self.next_leg == len(self._legs):
            return longest_episode(0)
        leg = self._legs[self.next_leg]
        return longest_episode(leg.end - leg.begin) if self._plays_on else AFTER_GOAL
