"""Plays a part of a path in this process: what it achieves, whether it reaches a goal, and what it can do without."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from services.trainer.exploration.rollout import ACTIONS_VERSION, RolloutPlan, compress_state
from services.trainer.state_archive.archive import PathPart, PathQuality
from services.trainer.state_archive.cell import lasting, may_restart
from services.trainer.state_archive.goal import achieves
from shared.game.decoding.decoder import Decoder
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode, continue_episode
from shared.game.games.game import Game
from shared.game.observation.counters import EpisodeCounters
from shared.game.observation.episode_memory import EpisodeMemory
from shared.game.observation.trace import EpisodeTrace
from shared.game.recording.segment import unpack_state

REMOVED: Final = (32, 16, 8, 4)  # actions that are left out together; a tile takes four steps of four frames
Counters = tuple[int, ...]
"""Lasting counters, in the order of state_archive.cell.LASTING."""


@dataclass(frozen=True, slots=True)
class LegStart:
    """Where a leg begins. `state` is compressed; without a memory the episode begins there, and its seed counts."""

    state: bytes
    memory: bytes | None = None
    counters: Counters = ()


class Arrival(NamedTuple):
    """The actions that were made, the hero's hearts after them, where the next leg begins, whether it is the goal."""

    actions: bytes
    hearts: int
    end: LegStart
    at_goal: bool


class LegPlayer:
    """Plays in one emulator of one game. Close it to end the emulator."""

    def __init__(self, game: Game, plan: RolloutPlan) -> None:
        self._game, self._skip = game, plan.frame_skip
        self._emulator, self._decoder = Emulator(game), Decoder(game.capabilities)

    def close(self) -> None:
        """End the emulator."""
        self._emulator.close()

    def legs(self, start: LegStart, path: PathPart) -> list[tuple[Counters, PathPart]]:
        """The lasting counters along a path in their order, each with the actions since the one before.

        They count when the hero has control: a leg ends where the next one can begin.
        """
        values: list[Counters] = [self.play(start, PathPart(path.seed, b"")).end.counters]
        self.play(start, path, values=values)
        found: list[tuple[Counters, PathPart]] = []
        begun = 0
        for made, (before, value) in enumerate(pairwise(values), start=1):
            if value != before:
                found.append((value, PathPart(path.seed, path.actions[begun:made])))
                begun = made
        return found

    def reach(self, start: LegStart, part: PathPart, goal: Counters) -> Arrival | None:
        """Play until the goal is reached and the hero has control; None if the actions do not lead there."""
        arrival = self.play(start, part, goal)
        return arrival if arrival.at_goal else None

    def play(
        self, start: LegStart, part: PathPart, goal: Counters | None = None, values: list[Counters] | None = None
    ) -> Arrival:
        """Play the part, or up to the goal. `values` receives the lasting counters when control was last seen."""
        emulator, decoder = self._emulator, self._decoder
        if start.memory is None:
            begin_episode(emulator, unpack_state(start.state), part.seed, ACTIONS_VERSION)
        else:
            continue_episode(emulator, unpack_state(start.state), ACTIONS_VERSION)
        image, _ = emulator.take()
        state = decoder.begin(image)
        trace = EpisodeTrace(state)
        counters = EpisodeCounters(state, trace, self._game.capabilities)
        if start.memory is not None:
            EpisodeMemory.from_bytes(start.memory).restore(trace, counters)
        packed, now, made, at_goal = counters.packed, lasting(counters.values), 0, False
        controlled = now
        for action in part.actions:
            emulator.step(action, self._skip)
            image, fresh = emulator.take()
            previous, state = state, decoder.decode(image, fresh)
            trace.step(state, action)
            counters.step(previous, state, trace)
            made += 1
            if counters.packed is not packed:
                packed, now = counters.packed, lasting(counters.values)
            if may_restart(state):
                controlled = now
                at_goal = goal is not None and achieves(now, goal)
            if values is not None:
                values.append(controlled)
            if at_goal:
                break
        end = LegStart(compress_state(emulator.save()), EpisodeMemory.of(trace, counters).to_bytes(), now)
        return Arrival(part.actions[:made], PathQuality.at(state, made).hearts, end, at_goal)

    def shortened(self, start: LegStart, part: PathPart, goal: Counters) -> Arrival | None:
        """Leave out what the goal is reached without, at no cost of hearts; None if the part does not reach it."""
        best = self.reach(start, part, goal)
        if best is None:
            return None
        for size in REMOVED:
            place = 0
            while place < len(best.actions):
                left = best.actions[:place] + best.actions[place + size :]
                found = self.reach(start, PathPart(part.seed, left), goal)
                if found is None or found.hearts < best.hearts:
                    place += size
                else:
                    best = found
        return best
