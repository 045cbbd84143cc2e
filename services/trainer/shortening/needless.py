"""Leaves out of a leg what its goal is reached without: ways that come back, and actions that change nothing."""

from typing import Final

from services.trainer.shortening.leg_player import Arrival, LegPlayer, LegStart, Place
from services.trainer.state_archive.archive import PathPart
from services.trainer.state_archive.goal import PathGoal

MIN_LOOP: Final = 8  # actions
REMOVED: Final = (32, 16, 8, 4)  # actions that are left out together; a tile takes four steps of four frames
SAVED_EVERY: Final = 40  # actions; saving a state costs as much as a hundred of them


def shortened(player: LegPlayer, start: LegStart, part: PathPart, goal: PathGoal) -> Arrival | None:
    """The part without actions that do not help: without them the goal is reached, and the way costs less.

    None if the part does not lead to the goal.
    """
    best = player.reach(start, part, goal)
    if best is None:
        return None
    best = _without_loops(player, start, part.seed, best, goal)
    for size in REMOVED:
        best = _without_chunks(player, start, part.seed, best, goal, size)
    return best


def _without_loops(player: LegPlayer, start: LegStart, seed: int, best: Arrival, goal: PathGoal) -> Arrival:
    """Leave out the ways that come back to the same pixel and achieved nothing, the longest first."""
    place, last_of = 0, _last_of(best)
    while place < len(best.actions):
        moments = best.moments
        last, found = last_of[moments[place].place], None
        if last - place >= MIN_LOOP:
            left = PathPart(seed, best.actions[:place] + best.actions[last:])
            found = player.reach(start, left, goal, moments[: place + 1] + moments[last + 1 :])
        if found is None or found.quality.cost >= best.quality.cost:
            place += 1
        else:
            best, last_of = found, _last_of(found)
    return best


def _last_of(arrival: Arrival) -> dict[Place, int]:
    """Each place of a way with the number of the last moment there."""
    return {moment.place: number for number, moment in enumerate(arrival.moments)}


def _without_chunks(player: LegPlayer, start: LegStart, seed: int, best: Arrival, goal: PathGoal, size: int) -> Arrival:
    """Leave out `size` actions at a time. Each trial begins at a state saved shortly before the place."""
    place, saved, here = 0, 0, start
    while place < len(best.actions):
        if place - saved >= SAVED_EVERY:
            here, saved = player.end(here, PathPart(seed, best.actions[saved:place])), place
        left = PathPart(seed, best.actions[saved:place] + best.actions[place + size :])
        along = best.moments[saved : place + 1] + best.moments[place + size + 1 :]
        found = player.reach(here, left, goal, along)
        if found is not None:
            actions, moments = best.actions[:saved] + found.actions, best.moments[:saved] + found.moments
            found = Arrival(actions, found.hearts, found.at_goal, moments)
        if found is None or found.quality.cost >= best.quality.cost:
            place += size
        else:
            best = found
    return best
