"""Shows the way back to episodes that have lost it, for the policy to imitate.

An expert labels the states that the policy itself comes to: DAgger (Ross, Gordon, Bagnell 2011, arXiv:1011.0686). The
episode is not touched: the executor leads the hero back in a game beside it, which begins at the state of the episode.
In a room where the trajectory fights on this leg, he fights.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.other_ways.courses import WalkedWay, lead_back, present_state, walk
from services.trainer.other_ways.fights import beat_enemies
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.other_ways.room_ways import ToTheMap
from services.trainer.other_ways.trail_map import TrailMap
from services.trainer.state_archive.cell import lasting, may_restart
from services.trainer.state_archive.goal import enemy_health_of
from shared.game.decoding.state import RoomKey
from shared.game.games.game import Game

MAX_STEPS: Final = 600  # of a way back; most take less than 200
TRIES_OF_A_LEG: Final = 6  # in an epoch and env runner; 40 tries take as long as 3 % of an epoch of 81,920 steps
NEAR: Final = 2  # tiles to the place: an episode that stands there knows the way, and something else is wrong


class LostMoment(NamedTuple):
    """An episode has lost the way on this leg: between these steps of the trajectory, in which nothing is gained."""

    leg: int
    begin: int
    end: int
    fights: Mapping[RoomKey, int] = MappingProxyType({})
    """The rooms in which the trajectory hits enemies on this leg, and the health that they have left afterwards."""


class LostEpisodes:
    """Leads the lost episodes of one env runner back. Close it to end its game."""

    def __init__(self, config: EnvConfig, game: Game) -> None:
        """`config` is that of the runner's environments."""
        self._session = GameSession(config, game=game)
        self._trail: TrailMap | None = None
        self._tried = Counter[int]()
        self._found: list[LegPass] = []

    def begin_epoch(self, trail: TrailMap | None) -> None:
        """From now on lead to the places of this map; None: lead nowhere."""
        self._trail, self._tried, self._found = trail, Counter(), []

    def look(self, episode: GameSession, lost: LostMoment) -> None:
        """Look for the way back of an episode that has just lost it. Nothing is found while the hero has no control."""
        if self._trail is None or not may_restart(episode.state) or self._tried[lost.leg] >= TRIES_OF_A_LEG:
            return
        self._tried[lost.leg] += 1
        here = replace(present_state(episode, "lost"), length=MAX_STEPS, ends_with_death=True)
        observation = self._session.begin(here, episode.episode.seed)
        rng = np.random.default_rng([lost.leg, self._tried[lost.leg], episode.episode.seed])
        way = self._way_back(self._trail, lost, observation, rng)
        if way is not None:
            self._found.append(way.as_pass(lost.leg, back=True))

    def _way_back(
        self, trail: TrailMap, lost: LostMoment, observation: NDArray[np.float32], rng: np.random.Generator
    ) -> WalkedWay | None:
        """Lead the hero back, first to a room that the trajectory enters, and fight there; None if he does not arrive.

        A hero who has failed at the place goes out of the room and comes in again, but not where there is a fight: a
        policy that imitates this runs away from its enemies without end.
        """
        session = self._session
        before = lasting(session.counters.values)
        way = walk(session, ToTheMap(trail.ways), observation)
        if way is not None and not self._fights(lost):
            stop = trail.ahead(session.state.key, lost.begin, lost.end)
            near = None if stop.place.room in lost.fights else NEAR
            way = way.then(lead_back(session, way.observation, stop, trail.ways, before, near=near))
        if way is not None and self._fights(lost):
            room = session.state.key
            way = way.then(beat_enemies(session, way.observation, room, lost.fights[room], rng))
        return way

    def _fights(self, lost: LostMoment) -> bool:
        """Whether the hero is in a room of a fight, and its enemies are stronger than the trajectory left them."""
        left = lost.fights.get(self._session.state.key)
        return left is not None and enemy_health_of(self._session.state) > left

    def drain(self) -> list[LegPass]:
        """The ways back that were found since the last call."""
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        """End the game."""
        self._session.close()
