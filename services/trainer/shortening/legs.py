"""Shortens the path that an exploration found: each leg, from one lasting achievement to the next, is explored alone.

An exploration fixes the beginning of a path long before its end, and keeps the detours. Here each leg continues the
state in which the shortened leg before it ended, so that the legs are one episode. Where no way leads on from that
state, the explored actions up to the next achievement are kept instead: they are known to lead there. Legs that give
the money for a payment come before it, even if the exploration paid with what enemies had dropped.
"""

from collections.abc import Callable, Iterator, Sequence

import structlog

from services.trainer.exploration.exploration import ExplorationPlan
from services.trainer.shortening.leg_player import LegPlayer, LegStart, PathLeg, goals_reached
from services.trainer.shortening.leg_search import LegRunner, LegSearch
from services.trainer.shortening.needless import shortened
from services.trainer.shortening.sure_money import NOTHING, end_of_order, sure_money_first
from services.trainer.state_archive.archive import PathPart
from services.trainer.state_archive.goal import CHESTS, PathGoal, rises
from shared.game.observation.counters import UNKNOWN_COUNT

log = structlog.get_logger(__name__)


class PathLegs:
    """The legs of one path. Close it to end its emulator."""

    def __init__(self, plan: ExplorationPlan, start: LegStart, path: PathPart, budget: int) -> None:
        """`start` is where the path begins: the true start. `budget` is the steps of search for all legs together."""
        self._plan, self._start = plan, start
        self._budget = budget / max(1, len(path.actions))  # for each step of the explored path
        self._player = LegPlayer(plan.open_game(), plan.rollout)
        self._explored = path
        self._legs = without_needless_chests(sure_money_first(self._player.legs(start, path)))

    @property
    def goals(self) -> list[PathGoal]:
        """What the path reaches, in its order."""
        return [leg.goal for leg in self._legs]

    def close(self) -> None:
        """End the emulator."""
        self._player.close()

    def shorten(
        self, runner: LegRunner, known: PathPart | None = None, ends: Callable[[], bool] = lambda: False
    ) -> Iterator[PathPart]:
        """The path up to each goal, searched when it is asked for. `known` is where an earlier call had come to.

        A path that gets no longer had reached that goal before. Once `ends`, nothing more comes: the leg whose search
        it cut short is searched again from its beginning by a later call.
        """
        path = known or PathPart(0, b"")
        here = self._player.end(self._start, path) if path.actions else self._start
        reached = self._reached(path)
        for number, leg in enumerate(self._legs):
            if number >= reached and not here.at(leg.goal):
                way = self._way(runner, number, here, ends)
                if ends():
                    return
                if way is None:
                    log.warning("no way leads on from the shortened path", leg=number, legs=len(self._legs))
                    reached = end_of_order(self._legs, number)
                    path = self._explored_to(reached)
                    here = self._player.end(self._start, path)
                else:
                    path = PathPart(path.seed if path.actions else way.seed, path.actions + way.actions)
                    here = self._player.end(here, way)
            yield path

    def leads(self, path: PathPart) -> bool:
        """Whether the path leads to the last goal as one episode from the true start."""
        return self._player.reach(self._start, path, self._legs[-1].goal) is not None

    def _reached(self, path: PathPart) -> int:
        """How many legs this path achieves. It may begin with explored actions, which keep another order."""
        moments, goals = self._player.play(self._start, path).moments, self.goals
        kept = (0, *(end_of_order(self._legs, number) for number in range(len(goals))))
        explored = max(count for count in kept if path.actions.startswith(self._explored_to(count).actions))
        return max(goals_reached(moments, goals), explored + goals_reached(moments, goals[explored:]))

    def _explored_to(self, count: int) -> PathPart:
        """The explored path up to the end of so many legs."""
        end = max((leg.end for leg in self._legs[:count]), default=0)
        return PathPart(self._explored.seed, self._explored.actions[:end])

    def _way(self, runner: LegRunner, number: int, here: LegStart, ends: Callable[[], bool]) -> PathPart | None:
        """The explored leg without needless actions, if it leads to the goal from here, or a shorter way.

        What it returns once `ends` must not be used.
        """
        goal, explored = self._legs[number].goal, self._legs[number].part
        known = shortened(self._player, here, explored, goal)
        quality = None if known is None else known.quality

        def leads(way: PathPart) -> bool:
            return self._player.reach(here, way, goal) is not None

        budget = int(self._budget * len(explored.actions))
        found = LegSearch(self._plan, runner, number, leads, budget, quality).run(here, goal, ends)
        if ends():
            return None
        best = known if found is None else shortened(self._player, here, found, goal)
        return None if best is None else PathPart(explored.seed if found is None else found.seed, best.actions)


def without_needless_chests(legs: Sequence[PathLeg]) -> list[PathLeg]:
    """The legs without those that end at a chest with money that nothing is paid with.

    The next leg begins with the actions of such a leg, and no later goal asks for its chest.
    """
    needed: list[PathLeg] = []
    before, left_out, actions = PathGoal(NOTHING), 0, b""
    for leg in legs:
        goal = leg.goal
        gains = rises(before.counters, goal.counters)
        gained = [place for place, gain in enumerate(gains) if 0 < gain < UNKNOWN_COUNT]
        needless = gained == [CHESTS] and goal.rupees <= before.rupees
        before, actions = goal, actions + leg.part.actions
        if needless:
            left_out += gains[CHESTS]
            continue
        asked = list(goal.counters)
        asked[CHESTS] -= left_out
        part = PathPart(leg.part.seed, actions)
        needed.append(leg._replace(goal=PathGoal(tuple(asked), goal.rupees), part=part))
        actions = b""
    return needed
