"""Leads the hero away from a trajectory, and records his way back.

A trajectory shows what to do on it alone. A policy that has left it, or comes back to life elsewhere, was never shown
how to return, and walks against a wall until its time is over. The executor finds ways through rooms, so it shows them,
as an expert who labels what a policy comes to see (Ross, Gordon, Bagnell 2011, arXiv:1011.0686).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from services.trainer.env.game_session import GameSession
from services.trainer.executor.outcome import GameView
from services.trainer.exploration.options import OptionMix
from services.trainer.exploration.room_options import RoomMix, RoomOptions
from services.trainer.other_ways.courses import lead_back, walk
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.other_ways.room_ways import RoomPlace, RoomWalker, Stop, Ways, rooms_around
from services.trainer.state_archive.cell import lasting
from shared.game.decoding.state import RoomKey
from shared.game.emulator.start import StartState

STRIDE: Final = 60  # steps of the trajectory between two places to which ways lead back
MOVED_STRIDE: Final = 20  # where it moves a block: there is more to go wrong
TRIES: Final = 8  # from each of them: half at random, half to another room
NEAR: Final = 4  # rooms to another one
MAX_STEPS: Final = 900  # away and back; most ways take less than 200
MAX_ASTRAY: Final = 60  # steps of a random walk away
PUSHES: Final = RoomMix(sticky=1, leave=0, target=4, strike=0, press=0, item=0, buttons=OptionMix(a=0, b=0, start=0))
"""In a room where the trajectory moves a block, it is pushed at random: against a wall it is of no use any more."""
WALKS: Final = RoomMix(sticky=3, leave=1, target=0, strike=0, buttons=OptionMix(a=0, b=0, start=0))
"""A random walk presses no button: it must change nothing but where the hero is."""


class TrailPlace(NamedTuple):
    """A place of the trajectory, to which ways lead back."""

    step: int
    place: RoomPlace
    away: Sequence[RoomPlace]
    """Where ways may begin: places of other rooms, that of the entrance first."""
    entry: RoomPlace
    """Where the hero came into this room."""
    moves: bool = False
    """Whether the trajectory changes the room's tiles in this stay, for example by pushing a block."""


def trail_places(places: Mapping[int, RoomPlace], ways: Ways) -> list[TrailPlace]:
    """Places of a trajectory STRIDE or MOVED_STRIDE steps apart. Pure.

    `places` holds those where the hero has control, by step and in their order.
    """
    found: list[TrailPlace] = []
    rooms: dict[RoomKey, RoomPlace] = {}  # by the first visit; those that come later may be open by now as well
    entrances: dict[int, RoomKey] = {}  # of each group: a dungeon, the houses, the land
    for place in places.values():
        rooms.setdefault(place.room, place)
        entrances.setdefault(place.room[0], place.room)
    for _, stay in groupby(places.items(), key=lambda step: step[1].room):
        steps = list(stay)
        entry, moves = steps[0][1], steps[0][1].layout != steps[-1][1].layout
        around, entrance = rooms_around(ways, entry.room), entrances[entry.room[0]]
        near = [room for room in rooms if room in around and len(around[room]) <= NEAR]
        away = [rooms[room] for room in ([entrance, *near] if entrance in around else near)]
        for step, place in steps:
            if not found or step >= found[-1].step + (MOVED_STRIDE if moves else STRIDE):
                found.append(TrailPlace(step, place, away, entry, moves))
    return found


def recoveries_of(session: GameSession, trail: TrailPlace, leg: int, ways: Ways, start: StartState) -> list[LegPass]:
    """The ways back to a place of the trajectory, on this leg, that were found. The same place has the same ways."""
    session.reseed(trail.step)
    session.set_starts([replace(start, length=MAX_STEPS, opening=0, ends_with_death=True)])
    tried = [_try(session, trail, leg, ways, number) for number in range(TRIES)]
    return [one for one in tried if one is not None]


def _try(session: GameSession, trail: TrailPlace, leg: int, ways: Ways, number: int) -> LegPass | None:
    """Lead the hero away and back; None if he does not arrive, or something has changed for good."""
    rng = np.random.default_rng([trail.step, number])
    observation = session.reset()
    before = lasting(session.counters.values)
    at_random = number % 2 or not trail.away
    mix = PUSHES if trail.moves and number % 4 == 1 else WALKS
    away = RandomWalk(rng, mix) if at_random else _to_another_room(trail, ways, rng)
    left = walk(session, away, observation)
    if left is None:
        return None
    back = lead_back(session, left.observation, Stop(trail.place, trail.entry), ways, before)
    return None if back is None else back.as_pass(leg)


class RandomWalk:
    """Walks at random for some steps, and on until the hero has control."""

    def __init__(self, rng: np.random.Generator, mix: RoomMix) -> None:
        self._options = RoomOptions(rng, mix)
        self._left = int(rng.integers(4, MAX_ASTRAY + 1))

    def next(self, view: GameView) -> int | None:
        """The next action; None at the end."""
        self._left -= 1
        return None if self._left < 0 and view.state.control else self._options.next(view)


def _to_another_room(trail: TrailPlace, ways: Ways, rng: np.random.Generator) -> RoomWalker:
    """To another room, in half of the tries to the entrance: after a death the hero goes on there."""
    there = trail.away[0] if rng.random() < 1 / 2 else trail.away[int(rng.integers(len(trail.away)))]
    return RoomWalker(ways, there.room, there.tile)
