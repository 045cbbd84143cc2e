"""Leads the hero away from a trajectory, and records his way back.

A trajectory shows what to do on it alone. A policy that has left it, or comes back to life elsewhere, was never shown
how to return, and walks against a wall until its time is over. The executor finds ways through rooms, so it shows them,
as an expert who labels what a policy comes to see (Ross, Gordon, Bagnell 2011, arXiv:1011.0686).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.game_session import GameSession
from services.trainer.executor.outcome import GameView
from services.trainer.exploration.options import OptionMix
from services.trainer.exploration.room_options import RoomMix, RoomOptions
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.other_ways.room_ways import RoomPlace, RoomWalker, Ways, rooms_around
from services.trainer.state_archive.cell import lasting
from shared.game.decoding.state import RoomKey
from shared.game.emulator.start import StartState

STRIDE: Final = 60  # steps of the trajectory between two places to which ways lead back
TRIES: Final = 8  # from each of them: half at random, half to another room
NEAR: Final = 4  # rooms to another one
MAX_STEPS: Final = 900  # away and back; most ways take less than 200
MAX_ASTRAY: Final = 60  # steps of a random walk away
WALKS: Final = RoomMix(sticky=3, leave=1, target=0, strike=0, buttons=OptionMix(a=0, b=0, start=0))
"""A random walk presses no button: it must change nothing but where the hero is."""


class TrailPlace(NamedTuple):
    """A place of the trajectory, to which ways lead back."""

    step: int
    place: RoomPlace
    away: Sequence[RoomPlace]
    """Where ways may begin: places of other rooms, that of the entrance first."""


class _Walker(Protocol):
    """Leads the hero somewhere."""

    def next(self, view: GameView) -> int | None:
        """The next action; None at the end."""
        ...


def trail_places(places: Mapping[int, RoomPlace], ways: Ways) -> list[TrailPlace]:
    """Places of a trajectory STRIDE steps apart, of its places by step. Pure."""
    found: list[TrailPlace] = []
    rooms: dict[RoomKey, RoomPlace] = {}  # by the first visit; those that come later may be open by now as well
    entrances: dict[int, RoomKey] = {}  # of each group: a dungeon, the houses, the land
    for _, place in sorted(places.items()):
        rooms.setdefault(place.room, place)
        entrances.setdefault(place.room[0], place.room)
    for step, place in sorted(places.items()):
        if not found or step >= found[-1].step + STRIDE:
            around, entrance = rooms_around(ways, place.room), entrances[place.room[0]]
            near = [room for room in rooms if room in around and len(around[room]) <= NEAR]
            away = [entrance, *near] if entrance in around else near
            found.append(TrailPlace(step, place, [rooms[room] for room in away]))
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
    away = _RandomWalk(rng) if number % 2 or not trail.away else _to_another_room(trail, ways, rng)
    left = _walk(session, away, observation)
    if left is None:
        return None
    back = RoomWalker(ways, trail.place.room, trail.place.tile)
    course = _walk(session, back, left.observation)
    changed = lasting(session.counters.values) != before
    if course is None or not course.actions or not back.arrived or changed:
        return None
    return LegPass(leg, np.stack(course.seen), np.array(course.actions, np.int64))


class _Course(NamedTuple):
    seen: list[NDArray[np.float32]]
    actions: list[int]
    observation: NDArray[np.float32]
    """After the last action."""


def _walk(session: GameSession, walker: _Walker, observation: NDArray[np.float32]) -> _Course | None:
    """What was seen and done until the walker ends; None if the episode ends before."""
    seen: list[NDArray[np.float32]] = []
    actions: list[int] = []
    observation = observation.copy()
    while True:
        action = walker.next(GameView(session.state, session.image))
        if action is None:
            return _Course(seen, actions, observation)
        seen.append(observation)
        actions.append(action)
        result = session.step(action)
        observation = result.observation.copy()
        if result.report is not None:
            return None


class _RandomWalk:
    """Walks at random for some steps, and on until the hero has control."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._options = RoomOptions(rng, WALKS)
        self._left = int(rng.integers(4, MAX_ASTRAY + 1))

    def next(self, view: GameView) -> int | None:
        self._left -= 1
        return None if self._left < 0 and view.state.control else self._options.next(view)


def _to_another_room(trail: TrailPlace, ways: Ways, rng: np.random.Generator) -> RoomWalker:
    """To another room, in half of the tries to the entrance: after a death the hero goes on there."""
    there = trail.away[0] if rng.random() < 1 / 2 else trail.away[int(rng.integers(len(trail.away)))]
    return RoomWalker(ways, there.room, there.tile)
