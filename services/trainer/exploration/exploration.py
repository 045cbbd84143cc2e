"""An exploration: rounds of rollouts from archive cells, until the steps are spent.

All rollouts of a round begin with the archive of the round before, and their results are merged in the order of the
tasks. So plan, seed and code alone decide the archive: neither the number of processes, nor an interruption.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bramble.registration import BRAMBLE
from services.trainer.exploration.archive_file import ArchiveFile
from services.trainer.exploration.progress import ExplorationProgress
from services.trainer.exploration.replay import pictures
from services.trainer.exploration.rollout import FoundState, PlayedRollout, RolloutPlan, RolloutTask, compress_state
from services.trainer.games import GAMES
from services.trainer.state_archive.archive import ArchiveEntry, PathPart, PathQuality
from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.selection import select
from shared.contracts.learning.restarts import RestartSelection
from shared.game.emulator.emulator import Emulator
from shared.game.games.game import Game
from shared.game.games.registry import GameRequest
from shared.game.observation.counters import LASTING

FIRST_ROLLOUTS: Final = 1
CELLS_PER_ROLLOUT: Final = 16
MAX_SEED: Final = 2**31


@dataclass(frozen=True, slots=True)
class ExplorationPlan:
    """What decides an exploration. The steps are no part of it: more steps continue the same exploration."""

    world: str
    seed: int
    selection: RestartSelection = "novelty"
    rollouts: int = 64
    """Rollouts of a round at most. More keep more processes busy, but see what others found later."""
    rollout: RolloutPlan = field(default_factory=RolloutPlan)
    reseeds: bool = True
    """Whether each rollout seeds the game's random generator; else each path of the archive is one episode."""
    game: str = BRAMBLE
    request: GameRequest | None = None
    """What a run says about its game; None: Bramble's world at normal difficulty."""

    def facts(self) -> dict[str, Any]:
        """The plan as data. The digest of the ROM stands for the game: files lie elsewhere on another machine."""
        unnamed = ("game", "request", *(["reseeds"] if self.reseeds else []))  # as it was before it could be chosen
        plan = {name: value for name, value in asdict(self).items() if name not in unnamed}
        return {**plan, "lasting_counters": list(LASTING)}  # cells of another version are not continued

    def open_game(self) -> Game:
        """Open the game."""
        return GAMES.open(self.game, self.request or GameRequest(self.world))


Known = Mapping[ArchiveCell, PathQuality]
"""The quality of the best path into each known cell."""


class RolloutRunner(Protocol):
    """Plays the rollouts of a round; workers.RolloutWorkers is one."""

    def play(self, tasks: Sequence[RolloutTask], news: Known) -> list[PlayedRollout]:
        """Play all tasks, in their order."""
        ...


class Exploration:
    """A running exploration, with its archive in memory and its file."""

    def __init__(self, plan: ExplorationPlan, start: bytes, file: ArchiveFile) -> None:
        """Begin at the emulator state `start`, or continue what the file holds."""
        self.plan, self._start, self._file = plan, start, file
        self.archive, milestones = file.load()
        self.progress = ExplorationProgress.of(file.fact("progress"))
        for entry in self.archive.entries:
            self.progress.reach(entry, milestones[entry.number])
        self._news: dict[ArchiveCell, PathQuality] = {entry.cell: entry.quality for entry in self.archive.best()}

    def run(
        self,
        runner: RolloutRunner,
        steps: int,
        report: Callable[[], None],
        ends: Callable[[], bool] = lambda: False,
    ) -> None:
        """Play rounds until `steps` are spent, or until `ends` after a round; report after each."""
        began = time.monotonic()
        while self.progress.steps < steps and not ends():
            parents, tasks = self._tasks()
            results = runner.play(tasks, self._news)
            now = time.monotonic()
            self.progress.wall_s, began = self.progress.wall_s + now - began, now
            self._merge(parents, tasks, results)
            report()

    def best_path(self) -> tuple[PathPart, ...]:
        """The path with the most milestones, in the fewest steps; it has no action before the first milestone."""
        entries = self.archive.entries
        if not entries:
            return ()
        best = max(entries, key=lambda entry: (self.progress.on_path(entry.number), -entry.quality.steps))
        return self.archive.trajectory(best)

    def pictures(self, path: Sequence[PathPart]) -> Iterator[NDArray[np.uint8]]:
        """The picture after each step of a path, uint8 (144, 160, 3) RGB."""
        emulator = Emulator(self.plan.open_game())
        try:
            yield from pictures(emulator, self._start, path, self.plan.rollout.frame_skip)
        finally:
            emulator.close()

    def _tasks(self) -> tuple[list[ArchiveEntry | None], list[RolloutTask]]:
        """The rollouts of the next round; those of the first one begin at the true start."""
        rng = np.random.default_rng([self.plan.seed, self.progress.rounds])
        parents: list[ArchiveEntry | None] = [None] * FIRST_ROLLOUTS
        if len(self.archive):
            # Rollouts of one round save the same new cells; while the archive is small, almost all of them are new.
            count = min(self.plan.rollouts, FIRST_ROLLOUTS + len(self.archive) // CELLS_PER_ROLLOUT)
            parents = [*select(self.archive, count, rng, self.plan.selection)]
        seeds = rng.integers(0, MAX_SEED, len(parents)).tolist()
        return parents, [self._task(parent, seed) for parent, seed in zip(parents, seeds, strict=True)]

    def _task(self, parent: ArchiveEntry | None, seed: int) -> RolloutTask:
        if parent is None:
            return RolloutTask(compress_state(self._start), None, 0, seed)
        stored, goes_on = self._file.state(parent), not self.plan.reseeds
        return RolloutTask(stored.state, stored.memory, parent.quality.steps, seed, goes_on=goes_on)

    def _merge(
        self, parents: list[ArchiveEntry | None], tasks: list[RolloutTask], results: list[PlayedRollout]
    ) -> None:
        """Add what was found, in the order of the tasks, and write the round."""
        added: dict[int, FoundState] = {}
        replaced: list[int] = []
        seen: set[ArchiveCell] = set()
        for parent, task, result in zip(parents, tasks, results, strict=True):
            self.progress.add_rollout(len(result.actions), result.died)
            self.archive.visits.update(result.seen)
            seen.update(result.seen)
            for found in result.found:
                if not self.archive.wants(found.cell, found.quality):
                    continue
                former = self.archive.best_of(found.cell)
                replaced += [] if former is None else [former.number]
                entry = self._entry(parent, task, result, found)
                self.archive.add(entry)
                added[entry.number] = found
                self.progress.reach(entry, found.milestones)
        self.progress.end_round(len(self.archive), len(self.archive.rooms()))
        entries = [(self.archive.entries[number], found) for number, found in added.items()]
        visits = {cell: self.archive.visits[cell] for cell in seen}
        self._file.write(entries, replaced, visits, {"progress": self.progress.facts()})
        self._news = {entry.cell: entry.quality for entry, _ in entries}

    def _entry(
        self, parent: ArchiveEntry | None, task: RolloutTask, result: PlayedRollout, found: FoundState
    ) -> ArchiveEntry:
        return ArchiveEntry(
            number=len(self.archive.entries),
            cell=found.cell,
            parent=None if parent is None else parent.number,
            seed=parent.seed if parent is not None and task.goes_on else task.game_seed,
            actions=result.actions[: found.actions],
            quality=found.quality,
            digest=found.digest,
            counters=found.counters,
        )
