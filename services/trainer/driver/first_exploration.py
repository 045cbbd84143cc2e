"""The exploration without a network with which a run may begin (`restarts.explore`), before its first epoch.

The path that achieved most is shortened and begins the run's archive of states: the first epoch is trained as if its
order had pinned that archive. Seed and settings decide the exploration, so that a repeated one finds the same. Its
database is stored at intervals, and another driver continues it. A path that is kept elsewhere is not searched again.
"""

import base64
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.heartbeat import HeartbeatThread
from services.trainer.exploration.archive_file import IN_MEMORY, ArchiveFile
from services.trainer.exploration.exploration import Exploration, ExplorationPlan
from services.trainer.exploration.rollout import RolloutPlan, compress_state
from services.trainer.exploration.workers import RolloutWorkers
from services.trainer.restarts.epoch_restarts import EpochRestarts
from services.trainer.restarts.explored_path import (
    ExploredPath,
    ExploredPaths,
    NoPaths,
    check_path,
    pack_of_path,
)
from services.trainer.rl.session_config import TrainingSessionConfig
from services.trainer.shortening.leg_player import LegStart
from services.trainer.shortening.legs import PathLegs
from services.trainer.state_archive.archive import ArchiveEntry, PathPart, in_one_episode
from services.trainer.state_archive.goal import achieved_in, next_goal
from shared.contracts.epoch import EpochStart, ExploredArchive
from shared.errors import Permanent
from shared.game.emulator.start import true_start
from shared.game.games.registry import GameRequest
from shared.process.cores import usable_cores

log = structlog.get_logger(__name__)

STORED_EVERY_S: Final = 60.0  # a crash repeats at most this much exploration
SHORTENING: Final = 0.5  # steps that shorten the path, as a share of those that found it
SHORTENING_VERSION: Final = 3  # of the rules; 3 pays with money that is given, not with what enemies dropped
SEARCH: Final = 1 / (1 + SHORTENING)  # of the progress shown
SHORTENED: Final = "shortened"  # fact of the database: the shortened path so far
SHORTENING_S: Final = "shortening_s"  # fact of the database: seconds that shortening took so far, in all drivers


class FirstExploration:
    """Explores for one run, once."""

    def __init__(
        self,
        driver_store: DriverStore,
        heartbeat: HeartbeatThread,
        restarts: EpochRestarts,
        config: TrainingSessionConfig,
        clock: Callable[[], float] = time.monotonic,
        paths: ExploredPaths | None = None,
    ) -> None:
        """`paths` keeps what is found for other runs; None: nothing is kept."""
        self._driver_store, self._heartbeat, self._restarts = driver_store, heartbeat, restarts
        self._config, self._clock, self._paths = config, clock, paths or NoPaths()

    def complete(self, order: EpochStart) -> EpochStart | None:
        """The order of a first epoch with the archive that exploration found; any other order as it is.

        None if there was a reason to exit before the exploration ended.
        """
        if order.epoch or not (order.config.restarts.explore and order.config.keeps_archive):
            return order
        explored = self._driver_store.read_explored() or self._explore(order)
        if explored is None:
            return None
        return order.model_copy(update={"archive": explored.archive, "demonstrations": explored.demonstrations})

    def _explore(self, order: EpochStart) -> ExploredArchive | None:
        plan = exploration_plan(self._config)
        game = plan.open_game()
        facts = {**plan.facts(), "rom": game.digest}
        decided_by = {
            **facts,
            "explore": order.config.restarts.explore,
            "shortening": SHORTENING,
            "legs": SHORTENING_VERSION,
        }
        kept = self._paths.find(decided_by)
        found = kept or self._search(plan, true_start(game).state, self._continued(facts), decided_by)
        if found is None:
            return None
        pack = pack_of_path(self._config.environment(), found.path, order.config.restarts.cell)
        check_path(found, pack)
        if kept is None:
            self._paths.keep(found)
        if self._exits:  # what follows may take minutes, and another driver soon has the same path
            return None
        archive, demonstrations = self._restarts.begin(order, pack)
        explored = ExploredArchive(
            run=order.run,
            steps=found.steps,
            seconds=found.seconds,
            cells=found.cells,
            path_steps=len(found.actions),
            archive=archive,
            demonstrations=demonstrations,
            created=datetime.now(UTC),
        )
        log.info("explored", steps=explored.steps, cells=explored.cells, path_steps=explored.path_steps)
        return self._driver_store.commit_explored(explored)

    def _search(
        self, plan: ExplorationPlan, start: bytes, file: ArchiveFile, decided_by: dict[str, Any]
    ) -> ExploredPath | None:
        """Explore and shorten; None if there was a reason to exit."""
        try:
            exploration = Exploration(plan, start, file)
            with RolloutWorkers(usable_cores(), plan) as workers:
                self._play(exploration, file, workers)
                best = next_goal(exploration.archive, None, None)
                found = self._best_path(exploration, best, start, file, workers)
            seconds = exploration.progress.wall_s + float(file.fact(SHORTENING_S) or 0)
        finally:
            file.close()
        if found is None:
            return None
        path, achieved = found
        return ExploredPath(
            exploration=decided_by,
            steps=exploration.progress.steps,
            seconds=seconds,
            cells=len(exploration.archive),
            achieved=achieved,
            seed=path.seed,
            actions=base64.urlsafe_b64encode(path.actions),
        )

    def _continued(self, facts: Mapping[str, Any]) -> ArchiveFile:
        """The exploration's database: what an earlier driver stored, or a new one. `facts` are those of the plan."""
        stored = self._driver_store.read_exploration()
        try:
            return ArchiveFile(IN_MEMORY, facts, stored)
        except Permanent as error:
            log.warning("stored exploration unreadable: it begins again", error=str(error))
            return ArchiveFile(IN_MEMORY, facts)

    def _play(self, exploration: Exploration, file: ArchiveFile, workers: RolloutWorkers) -> None:
        """Explore up to the run's steps, or to a reason to exit."""
        progress, steps, stored_at = exploration.progress, self._config.run.restarts.explore, self._clock()

        def report() -> None:
            nonlocal stored_at
            speed = progress.steps / max(progress.wall_s, 1e-9)
            self._heartbeat.update(explored=SEARCH * min(1.0, progress.steps / steps), steps_per_s=speed)
            if self._exits or progress.steps >= steps or self._clock() - stored_at >= STORED_EVERY_S:
                self._driver_store.save_exploration(file.content())
                stored_at = self._clock()
                log.info("exploring", steps=progress.steps, cells=len(exploration.archive))

        self._heartbeat.update(state="exploring", explored=SEARCH * min(1.0, progress.steps / steps))
        exploration.run(workers, steps, report, lambda: self._exits)

    @property
    def _exits(self) -> bool:
        return self._heartbeat.exit_reason is not None

    def _best_path(
        self,
        exploration: Exploration,
        best: ArchiveEntry | None,
        start: bytes,
        file: ArchiveFile,
        workers: RolloutWorkers,
    ) -> tuple[PathPart, int] | None:
        """The path to `best`, which achieved most (milestones decide nothing), shortened, and what it achieves.

        None if there was a reason to exit.
        """
        if exploration.progress.steps < self._config.run.restarts.explore:
            return None
        if best is None:
            return PathPart(0, b""), 0
        explored = in_one_episode(exploration.archive.trajectory(best))
        budget = int(SHORTENING * self._config.run.restarts.explore)
        legs = PathLegs(exploration.plan, LegStart(compress_state(start)), explored, budget)
        try:
            return self._shortened(legs, best, explored, file, workers)
        finally:
            legs.close()

    def _shortened(
        self, legs: PathLegs, best: ArchiveEntry, explored: PathPart, file: ArchiveFile, workers: RolloutWorkers
    ) -> tuple[PathPart, int] | None:
        """The explored path to `best`, shortened leg by leg as far as that succeeds, and what it achieves.

        None if there is a reason to exit.
        """
        noted = file.fact(SHORTENED)
        known = None if noted is None else PathPart(noted[0], base64.b64decode(noted[1]))
        path: PathPart | None = known
        began = self._clock() - float(file.fact(SHORTENING_S) or 0)
        goals = len(legs.goals)
        for goal, path in enumerate(legs.shorten(workers, known, lambda: self._exits), start=1):
            self._heartbeat.update(explored=SEARCH + (1 - SEARCH) * goal / goals)
            file.set_fact(SHORTENING_S, self._clock() - began)
            if path != known:
                file.set_fact(SHORTENED, [path.seed, base64.b64encode(path.actions).decode()])
                self._driver_store.save_exploration(file.content())
            if self._exits:
                return None
        if self._exits:
            return None
        if path is None or len(path.actions) >= len(explored.actions) or not legs.leads(path):
            log.warning("path not shortened", steps=len(explored.actions), goals=goals)
            return explored, achieved_in(best.cell.counters)
        return path, achieved_in(legs.goals[-1].counters)


def exploration_plan(config: TrainingSessionConfig) -> ExplorationPlan:
    """How a run is explored: its own game and length of a step, and options that read the room."""
    run = config.run
    request = GameRequest(run.world, run.difficulty, run.seed, rom=config.rom, start=config.start_state)
    return ExplorationPlan(
        run.world,
        run.seed,
        rollout=RolloutPlan(run.frame_skip),
        reseeds=False,
        game=run.game,
        request=request,
    )
