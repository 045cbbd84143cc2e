"""One rollout: continue from an archive state with options, and report each cell that deserves an entry.

A rollout depends on its task and on the cells known before it alone: not on the process, the time or other rollouts.
"""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from services.trainer.executor.outcome import GameView
from services.trainer.exploration.options import OptionMix, StickyOptions
from services.trainer.exploration.room_options import RoomMix, RoomOptions
from services.trainer.state_archive.archive import PathQuality, is_better, is_cheaper
from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.cell_watch import CellWatch
from services.trainer.state_archive.goal import PathGoal, rupees_of
from shared.contracts.run import ActionsName
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.state import GameState
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode, continue_episode
from shared.game.games.game import Game
from shared.game.observation.counters import EpisodeCounters
from shared.game.observation.episode_memory import EpisodeMemory
from shared.game.observation.trace import EpisodeTrace
from shared.game.recording.segment import unpack_state

LEVEL: Final = 1  # of compression: a state shrinks from 186 kB to 11 kB in 0.4 ms
ACTIONS_VERSION: Final[ActionsName] = "actions/v2"
WIDE_CELL: Final = 4  # tiles: options walk across a room, so few states of it suffice, and saving one costs 75 steps


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """What all rollouts of an exploration share."""

    frame_skip: int = 4
    patience: int = 120
    """A rollout ends after so many steps without a cell that deserves an entry."""
    longest: int = 1_000
    tiles_per_cell: int = WIDE_CELL
    mix: OptionMix | RoomMix = field(default_factory=RoomMix)

    @property
    def options(self) -> str:
        """What rollouts try: what the room offers, or sticky buttons alone."""
        return "room" if isinstance(self.mix, RoomMix) else "sticky"


@dataclass(frozen=True, slots=True)
class RolloutTask:
    """Where a rollout begins. `state` is compressed; without a memory the episode begins there."""

    state: bytes
    memory: bytes | None
    steps: int
    """Steps from the true start to the state."""
    seed: int
    """Of the options, and of the game's random generator."""
    goal: PathGoal | None = None
    """Where the rollout ends; None: it has no goal."""
    goes_on: bool = False
    """The game's random generator goes on, so that the path is one episode; else the rollout seeds it."""

    @property
    def game_seed(self) -> int:
        """The word that seeds the game."""
        return self.seed & 0xFFFF


@dataclass(frozen=True, slots=True)
class FoundState:
    """A state that deserves an entry. `actions` of the rollout's actions lead to it."""

    cell: ArchiveCell
    quality: PathQuality
    actions: int
    digest: str
    counters: bytes
    milestones: int
    """Bit set of the milestones that hold in it; for reports alone."""
    state: bytes
    memory: bytes


@dataclass(frozen=True, slots=True)
class PlayedRollout:
    """What a rollout did."""

    actions: bytes
    seen: tuple[ArchiveCell, ...]
    found: tuple[FoundState, ...]
    died: bool
    arrived: bool
    """The last found state is at the task's goal."""


def compress_state(state: bytes) -> bytes:
    """An emulator's state as `unpack_state` reads it. Faster than the archive of a segment, and nothing is cached."""
    return zlib.compress(state, LEVEL)


class RolloutPlayer:
    """Plays rollouts of one game in one emulator."""

    def __init__(self, game: Game, plan: RolloutPlan) -> None:
        self._game, self._plan = game, plan
        self._emulator = Emulator(game)
        self._decoder = Decoder(game.capabilities)

    def play(self, task: RolloutTask, known: Mapping[ArchiveCell, PathQuality]) -> PlayedRollout:
        """Play one rollout. `known` is the quality of the best path into each known cell."""
        if task.goes_on:
            continue_episode(self._emulator, unpack_state(task.state), ACTIONS_VERSION)
        else:
            begin_episode(self._emulator, unpack_state(task.state), task.game_seed, ACTIONS_VERSION)
        image, _ = self._emulator.take()
        state = self._decoder.begin(image)
        rollout = _Rollout(self._game, self._plan, task, known, state)
        options = _options(np.random.default_rng(task.seed), self._plan.mix)
        rollout.look(state, image, self._emulator)
        while not rollout.ended:
            action = options.next(GameView(state, image))
            self._emulator.step(action, self._plan.frame_skip)
            image, fresh = self._emulator.take()
            state = self._decoder.decode(image, fresh)
            rollout.step(state, action)
            rollout.look(state, image, self._emulator)
        return rollout.result()

    def close(self) -> None:
        """End the emulator."""
        self._emulator.close()


def _options(rng: np.random.Generator, mix: OptionMix | RoomMix) -> StickyOptions | RoomOptions:
    return RoomOptions(rng, mix) if isinstance(mix, RoomMix) else StickyOptions(rng, mix)


class _Rollout:
    """The running rollout: the continued episode, and what was found in it."""

    def __init__(
        self,
        game: Game,
        plan: RolloutPlan,
        task: RolloutTask,
        known: Mapping[ArchiveCell, PathQuality],
        state: GameState,
    ) -> None:
        self._game, self._plan, self._known, self._before = game, plan, known, task.steps
        self._trace = EpisodeTrace(state)
        self._counters = EpisodeCounters(state, self._trace, game.capabilities)
        if task.memory is not None:
            EpisodeMemory.from_bytes(task.memory).restore(self._trace, self._counters)
        self._state, self._deaths = state, state.inventory.deaths
        self._actions = bytearray()
        self._seen: dict[ArchiveCell, None] = {}
        self._found: dict[ArchiveCell, FoundState] = {}
        self._left = plan.patience
        self._died, self._arrived, self._goal = False, False, task.goal
        self._better = is_better if task.goal is None else is_cheaper
        self._watch = CellWatch(plan.tiles_per_cell)

    @property
    def ended(self) -> bool:
        """Whether the hero died or arrived, nothing new was found for too long, or it is as long as allowed."""
        return self._died or self._arrived or self._left <= 0 or len(self._actions) >= self._plan.longest

    def step(self, state: GameState, action: int) -> None:
        """Record a step."""
        previous, self._state = self._state, state
        self._actions.append(action)
        self._left -= 1
        self._trace.step(state, action)
        self._counters.step(previous, state, self._trace)
        self._died = state.died_since(self._deaths)

    def look(self, state: GameState, image: bytes, emulator: Emulator) -> None:
        """Count the cell as seen, and keep the state if its cell is new or reached by a better path."""
        cell = self._watch.enter(state, self._counters)
        if cell is None:
            return
        self._seen[cell] = None
        self._arrived = self._goal is not None and self._goal.reached(cell.counters, rupees_of(state))
        quality = PathQuality.at(state, self._before + len(self._actions))
        found = self._found.get(cell)
        known = self._known.get(cell) if found is None else found.quality
        if known is None or self._better(quality, known) or self._arrived:
            self._found[cell] = self._keep(cell, quality, image, emulator)
            self._left = self._plan.patience if known is None else self._left

    def _keep(self, cell: ArchiveCell, quality: PathQuality, image: bytes, emulator: Emulator) -> FoundState:
        state = emulator.save()
        reached = [milestone.reached(image) for milestone in self._game.milestones]
        return FoundState(
            cell,
            quality,
            len(self._actions),
            hashlib.sha256(state).hexdigest(),
            self._counters.packed,
            sum(1 << place for place, holds in enumerate(reached) if holds),
            compress_state(state),
            EpisodeMemory.of(self._trace, self._counters).to_bytes(),
        )

    def result(self) -> PlayedRollout:
        """What the rollout did, with the found states in the order of their steps."""
        found = sorted(self._found.values(), key=lambda one: one.actions)
        return PlayedRollout(bytes(self._actions), tuple(self._seen), tuple(found), self._died, self._arrived)
