"""The shortest way between places of a navigation grid: A* (Hart, Nilsson, Raphael 1968), Manhattan distance."""

import heapq
import sys
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Final

from services.trainer.executor.macros import Tile
from services.trainer.executor.navigation_grid import NavigationGrid, Place
from services.trainer.executor.outcome import STEPS
from shared.game.decoding.grid import CELL

NOWHERE: Final = (-9, -9)
NO_WAY: Final = (sys.maxsize, NOWHERE)  # costs more than every way
AVOIDED: Final = 500  # pixels that a step onto an avoided tile costs: a detour through the whole room is cheaper


def find_path(
    navigation: NavigationGrid,
    starts: Mapping[Place, int],
    goals: Collection[Place],
    avoided: Collection[Tile],
    walls: Collection[Place],
) -> list[Place] | None:
    """Return the places from the best start to the nearest goal, both included; None without a way.

    `starts` holds each start's distance from the hero in pixels. `avoided` tiles are entered only where nothing else
    leads; `walls` are places that proved to be blocked.
    """
    if not goals:
        return None
    came: dict[Place, Place] = {}
    best: dict[Place, tuple[int, Place]] = {}  # the lowest cost of each place seen, and the place before it
    heap: list[tuple[int, int, Place, Place]] = [
        (cost + _distance(start, goals), cost, start, NOWHERE) for start, cost in starts.items()
    ]
    heapq.heapify(heap)
    while heap:
        _, cost, place, before = heapq.heappop(heap)
        if place in came:
            continue
        came[place] = before
        if place in goals:
            return _back(came, place)
        for dx, dy in STEPS:
            there = place[0] + dx, place[1] + dy
            if there in came or there in walls or not navigation.is_free(there):
                continue
            far = cost + CELL + (AVOIDED if avoided and there not in goals and navigation.tile(there) in avoided else 0)
            if (way := (far, place)) < best.get(there, NO_WAY):
                best[there] = way
                heapq.heappush(heap, (far + _distance(there, goals), far, there, place))
    return None


def corners(path: list[Place]) -> list[Place]:
    """The places where a path turns, and its end: straight lines between them follow it."""
    turns = [
        here
        for (before, here), (_, after) in pairwise(pairwise(path))
        if (here[0] - before[0], here[1] - before[1]) != (after[0] - here[0], after[1] - here[1])
    ]
    return [path[0], *turns, path[-1]]


def _distance(place: Place, goals: Collection[Place]) -> int:
    return CELL * min(abs(place[0] - goal[0]) + abs(place[1] - goal[1]) for goal in goals)


def _back(came: dict[Place, Place], place: Place) -> list[Place]:
    path = [place]
    while (before := came[path[-1]]) != NOWHERE:
        path.append(before)
    return path[::-1]
