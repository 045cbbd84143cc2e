"""Shows the way back to episodes that have lost it, for the policy to imitate.

An expert labels the states that the policy itself comes to: DAgger (Ross, Gordon, Bagnell 2011, arXiv:1011.0686). The
episode is not touched: the executor leads the hero back in a game beside it, which begins at the state of the episode.
"""

from collections import Counter
from typing import Final, NamedTuple

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.executor.outcome import GameView
from services.trainer.other_ways.courses import walk
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.other_ways.room_ways import RoomPlace, way_back
from services.trainer.other_ways.trail_map import TrailMap
from services.trainer.state_archive.cell import lasting, may_restart
from shared.game.emulator.start import StartState
from shared.game.games.game import Game
from shared.game.observation.episode_memory import EpisodeMemory

MAX_STEPS: Final = 600  # of a way back; most take less than 200
TRIES_OF_A_LEG: Final = 2  # in an epoch and env runner: each takes about a second
NEAR: Final = 2  # tiles to the place: an episode that stands there knows the way, and something else is wrong


class LostMoment(NamedTuple):
    """An episode has lost the way: on this leg, and where the trajectory is at this step."""

    leg: int
    step: int


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
        memory = EpisodeMemory.of(episode.trace, episode.counters).to_bytes()
        here = StartState("lost", episode.emulator.save(), memory, length=MAX_STEPS, ends_with_death=True)
        observation = self._session.begin(here, episode.episode.seed)
        before = lasting(self._session.counters.values)
        stop = self._trail.at(lost.step)
        stands = RoomPlace.of(GameView(self._session.state, self._session.image))
        walker = way_back(stands, stop.place, stop.entry, self._trail.ways, near=NEAR)
        course = walk(self._session, walker, observation)
        changed = lasting(self._session.counters.values) != before
        if course is not None and course.actions and walker.arrived and not changed:
            self._found.append(course.as_pass(lost.leg, back=True))

    def drain(self) -> list[LegPass]:
        """The ways back that were found since the last call."""
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        """End the game."""
        self._session.close()
