"""Watches the episodes of one env runner, and keeps each state that is the first or best path into its archive cell.

A look costs a comparison while the hero stays in his cell. The state is saved only for a path that deserves an entry.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.trainer.env.game_session import GameSession
from services.trainer.exploration.rollout import compress_state
from services.trainer.other_ways.lost_episodes import LostMoment
from services.trainer.restarts.leg_limits import LegLimits, LegProgress
from services.trainer.state_archive.archive import PathQuality, is_better
from services.trainer.state_archive.cell import TILES_PER_CELL, ArchiveCell
from services.trainer.state_archive.cell_watch import CellWatch, GoalWatch
from services.trainer.state_archive.goal import ArchiveGoal, TrajectoryLeg
from shared.contracts.base import sha256
from shared.game.observation.episode_memory import EpisodeMemory


@dataclass(frozen=True, slots=True)
class PathStart:
    """Where a path begins: an archive entry, or the true start, with its steps from there."""

    entry: int | None = None
    steps: int = 0
    follows: int | None = None
    """Set where the path begins on the way to the entry, after so many steps; None: at the entry."""
    leg: int | None = None
    """The leg whose goal an episode from here is to reach; None: the collector's goal."""


@dataclass(frozen=True, slots=True)
class CollectedState:
    """A state that deserves an archive entry: the path into it, the emulator's state and the episode's memory."""

    cell: ArchiveCell
    parent: int | None
    """The entry whose state the episode began with; None: the true start."""
    seed: int
    actions: bytes
    """From the parent's state, under the game's random seed `seed`."""
    quality: PathQuality
    counters: bytes
    digest: str
    """SHA-256 of the emulator's state."""
    state: bytes
    """Compressed, as `unpack_state` reads it."""
    memory: bytes
    follows: int | None = None
    """The episode began on the path to the parent, after so many steps; None: at the parent."""


Known = Mapping[ArchiveCell, PathQuality]


class CellCollector:
    """Collects from `environments` games. `starts` gives the path to each start state by its name."""

    def __init__(
        self,
        environments: int,
        known: Known,
        starts: Mapping[str, PathStart],
        goal: ArchiveGoal | None = None,
        tiles_per_cell: int = TILES_PER_CELL,
        legs: Sequence[TrajectoryLeg] = (),
    ) -> None:
        """`known` is the quality of the best path into each cell of the archive.

        `goal` and `legs` are those of a curriculum; the legs limit its episodes.
        """
        self._known, self._starts, self.goal = known, starts, goal
        self._goals = [GoalWatch(goal) for _ in range(environments)]
        self._legs = legs
        self._limits: dict[int, LegLimits] = {}
        self._tiles = tiles_per_cell
        self._watches = [CellWatch(tiles_per_cell) for _ in range(environments)]
        self._seen: list[set[ArchiveCell]] = [set() for _ in range(environments)]
        self._episodes: list[int] = [-1] * environments
        self._found: dict[ArchiveCell, CollectedState] = {}
        self._best: dict[ArchiveCell, PathQuality] = {}
        self._visits: Counter[ArchiveCell] = Counter()

    def look(self, env: int, session: GameSession) -> LegProgress:
        """Look at the present state of an environment's game; what it has just passed on the trajectory."""
        if session.episode.number != self._episodes[env]:
            self._begin(env, session)
        passed = self._limits[env].look(session)
        self._goals[env].look(session.state, session.counters)
        cell = self._watches[env].enter(session.state, session.counters)
        if cell is None or session.detectors.deaths:  # no path of the archive leads through a death
            return passed
        if cell not in self._seen[env]:
            self._seen[env].add(cell)
            self._visits[cell] += 1
        start = self._starts.get(session.episode.start.name, PathStart())
        quality = PathQuality.at(session.state, start.steps + session.episode.steps)
        best = self._best.get(cell) or self._known.get(cell)
        if best is None or is_better(quality, best):
            self._best[cell] = quality
            self._found[cell] = _collected(session, cell, start, quality)
        return passed

    def reached_goal(self, env: int) -> bool:
        """Whether the present episode of an environment has reached its goal: of the leg it began on, or the last."""
        return self._goals[env].reached or self._limits[env].passed_first

    def lost(self, env: int) -> LostMoment | None:
        """Set if the present episode of an environment has lost the way at the last look."""
        return self._limits[env].lost

    def next_leg(self, env: int) -> int:
        """The number of the leg that the present episode of an environment is to pass next."""
        return self._limits[env].next_leg

    def passed(self, env: int) -> LegProgress:
        """What the present episode of an environment has passed on the trajectory."""
        return self._limits[env].passed

    def drain(self) -> tuple[list[CollectedState], Counter[ArchiveCell]]:
        """What was found since the last call, in the order of finding, and how many episodes saw each cell."""
        found, visits = list(self._found.values()), self._visits
        self._found, self._visits = {}, Counter()
        return found, visits

    def _begin(self, env: int, session: GameSession) -> None:
        start = self._starts.get(session.episode.start.name, PathStart())
        self._episodes[env] = session.episode.number
        self._limits[env] = LegLimits(self._legs, start.leg, session, start.steps)
        self._seen[env] = set()
        self._goals[env] = GoalWatch(self.goal if start.leg is None else None)
        self._watches[env] = CellWatch(self._tiles)


def _collected(session: GameSession, cell: ArchiveCell, start: PathStart, quality: PathQuality) -> CollectedState:
    state = session.emulator.save()
    return CollectedState(
        cell=cell,
        parent=start.entry,
        seed=session.episode.seed,
        actions=bytes(session.episode.actions),
        quality=quality,
        counters=session.counters.packed,
        digest=sha256(state),
        state=compress_state(state),
        memory=EpisodeMemory.of(session.trace, session.counters).to_bytes(),
        follows=start.follows,
    )
