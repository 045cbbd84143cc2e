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

MIN_LOOP: Final = 8  # actions
REMOVED: Final = (32, 16, 8, 4)  # actions that are left out together; a tile takes four steps of four frames
Counters = tuple[int, ...]
"""Lasting counters, in the order of state_archive.cell.LASTING."""


@dataclass(frozen=True, slots=True)
class LegStart:
    """Where a leg begins. `state` is compressed; without a memory the episode begins there, and its seed counts."""

    state: bytes
    memory: bytes | None = None
    counters: Counters = ()


class Moment(NamedTuple):
    """Room and pixel of the hero, and the lasting counters when he last had control."""

    group: int
    room: int
    x: int
    y: int
    counters: Counters


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
        moments: list[Moment] = []
        self.play(start, path, moments=moments)
        found: list[tuple[Counters, PathPart]] = []
        begun = 0
        for made, (before, after) in enumerate(pairwise(moments), start=1):
            if after.counters != before.counters:
                found.append((after.counters, PathPart(path.seed, path.actions[begun:made])))
                begun = made
        return found

    def reach(self, start: LegStart, part: PathPart, goal: Counters) -> Arrival | None:
        """Play until the goal is reached and the hero has control; None if the actions do not lead there."""
        arrival = self.play(start, part, goal)
        return arrival if arrival.at_goal else None

    def play(
        self, start: LegStart, part: PathPart, goal: Counters | None = None, moments: list[Moment] | None = None
    ) -> Arrival:
        """Play the part, or up to the goal. `moments` receives where the hero is at the start and after each step."""
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
        if moments is not None:
            moments.append(Moment(*state.key, state.x, state.y, controlled))
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
            if moments is not None:
                moments.append(Moment(*state.key, state.x, state.y, controlled))
            if at_goal:
                break
        end = LegStart(compress_state(emulator.save()), EpisodeMemory.of(trace, counters).to_bytes(), now)
        return Arrival(part.actions[:made], PathQuality.at(state, made).hearts, end, at_goal)

    def shortened(self, start: LegStart, part: PathPart, goal: Counters) -> Arrival | None:
        """Leave out what the goal is reached without, at no cost of hearts; None if the part does not reach it."""
        best = self.reach(start, part, goal)
        if best is None:
            return None
        best = self._without_loops(start, part.seed, best, goal)
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

    def _without_loops(self, start: LegStart, seed: int, best: Arrival, goal: Counters) -> Arrival:
        """Leave out the ways that come back to the same pixel with the same counters, the longest first."""
        place, moments = 0, self._moments(start, PathPart(seed, best.actions))
        while place < len(best.actions):
            last = max(number for number, moment in enumerate(moments) if moment == moments[place])
            if last - place >= MIN_LOOP:
                left = best.actions[:place] + best.actions[last:]
                found = self.reach(start, PathPart(seed, left), goal)
                if found is not None and found.hearts >= best.hearts:
                    best, moments = found, self._moments(start, PathPart(seed, found.actions))
                    continue
            place += 1
        return best

    def _moments(self, start: LegStart, part: PathPart) -> list[Moment]:
        moments: list[Moment] = []
        self.play(start, part, moments=moments)
        return moments
