"""Shortens the path that an exploration found: each leg, from one lasting achievement to the next, is explored alone.

An exploration fixes the beginning of a path long before its end, and keeps the detours. Here each leg continues the
state in which the shortened leg before it ended, so that the legs are one episode.
"""

from collections.abc import Iterator

from services.trainer.exploration.exploration import ExplorationPlan
from services.trainer.shortening.leg_player import LegPlayer, LegStart, goals_reached
from services.trainer.shortening.leg_search import LegRunner, LegSearch
from services.trainer.shortening.needless import shortened
from services.trainer.state_archive.archive import PathPart
from services.trainer.state_archive.goal import PathGoal


class PathLegs:
    """The legs of one path. Close it to end its emulator."""

    def __init__(self, plan: ExplorationPlan, start: LegStart, path: PathPart, budget: int) -> None:
        """`start` is where the path begins: the true start. `budget` is the steps of search for all legs together."""
        self._plan, self._start = plan, start
        self._budget = budget / max(1, len(path.actions))  # for each step of the explored path
        self._player = LegPlayer(plan.open_game(), plan.rollout)
        self._legs = self._player.legs(start, path)

    @property
    def goals(self) -> list[PathGoal]:
        """What the path reaches, in its order."""
        return [goal for goal, _ in self._legs]

    def close(self) -> None:
        """End the emulator."""
        self._player.close()

    def shorten(self, runner: LegRunner, known: PathPart | None = None) -> Iterator[PathPart | None]:
        """The path up to each goal, searched when it is asked for. `known` is where an earlier call had come to.

        A path that gets no longer had reached that goal before. None, and the last, if the search for a leg failed.
        """
        path = known or PathPart(0, b"")
        here = self._player.end(self._start, path) if path.actions else self._start
        reached = goals_reached(self._player.play(self._start, path).moments, self.goals)
        for number, (goal, explored) in enumerate(self._legs):
            if number >= reached and not here.at(goal):
                leg = self._leg(runner, number, here, explored)
                if leg is None:
                    yield None
                    return
                path = PathPart(path.seed if path.actions else leg.seed, path.actions + leg.actions)
                here = self._player.end(here, leg)
            yield path

    def leads(self, path: PathPart) -> bool:
        """Whether the path leads to the last goal as one episode from the true start."""
        return self._player.reach(self._start, path, self._legs[-1][0]) is not None

    def _leg(self, runner: LegRunner, number: int, here: LegStart, explored: PathPart) -> PathPart | None:
        """The explored leg without needless actions, if it leads to the goal from here, or a shorter one."""
        goal = self._legs[number][0]
        known = shortened(self._player, here, explored, goal)
        quality = None if known is None else known.quality

        def leads(way: PathPart) -> bool:
            return self._player.reach(here, way, goal) is not None

        budget = int(self._budget * len(explored.actions))
        found = LegSearch(self._plan, runner, number, leads, budget, quality).run(here, goal)
        best = known if found is None else shortened(self._player, here, found, goal)
        return None if best is None else PathPart(explored.seed if found is None else found.seed, best.actions)
