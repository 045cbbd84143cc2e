"""Shortens the path that an exploration found: each leg, from one lasting achievement to the next, is explored alone.

An exploration fixes the beginning of a path long before its end, and keeps the detours. Here each leg continues the
state in which the shortened leg before it ended, so the legs are one path again.
"""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from services.trainer.exploration.exploration import ExplorationPlan
from services.trainer.exploration.leg_player import Counters, LegPlayer, LegStart
from services.trainer.exploration.leg_search import LegRunner, LegSearch
from services.trainer.state_archive.archive import PathPart, PathQuality
from services.trainer.state_archive.goal import achieves


def pack_legs(legs: Sequence[PathPart]) -> list[list[Any]]:
    """The legs as plain JSON data."""
    return [[leg.seed, base64.b64encode(leg.actions).decode()] for leg in legs]


def unpack_legs(data: Sequence[Any]) -> list[PathPart]:
    """The inverse of `pack_legs`."""
    return [PathPart(int(seed), base64.b64decode(text)) for seed, text in data]


class PathLegs:
    """The legs of one path. Close it to end its emulator."""

    def __init__(self, plan: ExplorationPlan, start: LegStart, path: Sequence[PathPart]) -> None:
        """`start` is where the path begins: the true start."""
        self._plan, self._start = plan, start
        self._player = LegPlayer(plan.open_game(), plan.rollout)
        self._legs = self._player.achievements(start, path)

    @property
    def goals(self) -> list[Counters]:
        """The lasting counters that the path reaches, in its order."""
        return [goal for goal, _ in self._legs]

    def close(self) -> None:
        """End the emulator."""
        self._player.close()

    def shorten(self, runner: LegRunner, known: Sequence[PathPart] = ()) -> Iterator[PathPart | None]:
        """The leg to each goal, searched when it is asked for; those in `known` come from an earlier call.

        A leg has no action if its goal was reached with an earlier one. None, and the last, if the search failed.
        """
        here = self._start
        for number, (goal, explored) in enumerate(self._legs):
            if number < len(known):
                leg: PathPart | None = known[number]
            elif here.counters and achieves(here.counters, goal):
                leg = PathPart(0, b"")
            else:
                leg = self._leg(runner, number, here, explored)
            yield leg
            if leg is None:
                return
            here = self._player.play(here, leg).end if leg.actions else here

    def _leg(self, runner: LegRunner, number: int, here: LegStart, explored: tuple[PathPart, ...]) -> PathPart | None:
        """The explored leg without needless actions, if it leads to the goal from here, or a shorter one."""
        goal = self._legs[number][0]
        known = self._in_one(here, explored, goal)
        quality = None if known is None else PathQuality(known.hearts, len(known.part.actions))

        def leads(way: PathPart) -> bool:
            return self._player.reach(here, way, goal) is not None

        found = LegSearch(self._plan, runner, number, leads, quality).run(here, goal)
        if found is None:
            return None if known is None else known.part
        shorter = self._in_one(here, (found,), goal)
        return found if shorter is None else shorter.part

    def _in_one(self, start: LegStart, parts: Sequence[PathPart], goal: Counters) -> "_Shortened | None":
        """The parts as one episode without actions that the goal does not need; None if they do not lead there so."""
        actions = b"".join(part.actions for part in parts)
        for seed in dict.fromkeys(part.seed for part in parts):
            part = PathPart(seed, actions)
            if self._player.reach(start, part, goal) is not None:
                shortened = self._player.shortened(start, part, goal)
                return _Shortened(PathPart(seed, shortened.actions), shortened.hearts)
        return None


class _Shortened(NamedTuple):
    part: PathPart
    hearts: int
