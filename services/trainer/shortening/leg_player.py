"""Plays a part of a path in this process: what it achieves, whether it reaches a goal, and where it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from services.trainer.exploration.rollout import ACTIONS_VERSION, RolloutPlan, compress_state
from services.trainer.state_archive.archive import PathPart, PathQuality
from services.trainer.state_archive.cell import lasting, may_restart
from services.trainer.state_archive.goal import PathGoal, rupees_needed, rupees_of
from shared.game.decoding.decoder import Decoder
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode, continue_episode
from shared.game.games.game import Game
from shared.game.observation.counters import EpisodeCounters
from shared.game.observation.episode_memory import EpisodeMemory
from shared.game.observation.trace import EpisodeTrace
from shared.game.recording.segment import unpack_state

ASTRAY: Final = 40  # steps in other rooms than a known way, after which its actions no longer lead anywhere
Counters = tuple[int, ...]
"""Lasting counters, in the order of state_archive.cell.LASTING."""
Place = tuple[int, int, int, int, Counters]
"""Group, room, pixel column and row, and lasting counters."""


@dataclass(frozen=True, slots=True)
class LegStart:
    """Where a leg begins. `state` is compressed; without a memory the episode begins there, and its seed counts."""

    state: bytes
    memory: bytes | None = None
    counters: Counters = ()
    rupees: int = 0

    def at(self, goal: PathGoal) -> bool:
        """Whether the episode that continues here has reached the goal; one that begins here has reached nothing."""
        return self.memory is not None and goal.reached(self.counters, self.rupees)


class Moment(NamedTuple):
    """Room and pixel of the hero, and his money and lasting counters when he last had control."""

    group: int
    room: int
    x: int
    y: int
    rupees: int
    counters: Counters

    @property
    def place(self) -> Place:
        """What makes a later moment a return to this one. Money does not: a way that buys a potion returns, too."""
        return self.group, self.room, self.x, self.y, self.counters


class Arrival(NamedTuple):
    """The actions that were made, the hero's hearts after them, and whether he is at the goal."""

    actions: bytes
    hearts: int
    at_goal: bool
    moments: list[Moment]
    """At the start and after each action."""

    @property
    def quality(self) -> PathQuality:
        """Hearts and steps."""
        return PathQuality(self.hearts, len(self.actions))


class PathLeg(NamedTuple):
    """A part of an explored path, from one achievement to the next."""

    goal: PathGoal
    part: PathPart
    end: int = 0
    """Actions of the explored path up to its end."""
    group: int = 0
    """Of the room in which it ends."""
    money: int = 0
    """Rupees that came with the achievement, negative if it was paid for; not those found on the way to it."""


def goals_reached(moments: Sequence[Moment], goals: Sequence[PathGoal]) -> int:
    """How many of these goals a path reaches, one after another. Money for the first may be spent since."""
    number = 0
    for moment in moments:
        while number < len(goals) and goals[number].reached(moment.counters, moment.rupees):
            number += 1
    return number


class LegPlayer:
    """Plays in one emulator of one game. Close it to end the emulator."""

    def __init__(self, game: Game, plan: RolloutPlan) -> None:
        self._game, self._skip = game, plan.frame_skip
        self._emulator, self._decoder = Emulator(game), Decoder(game.capabilities)

    def close(self) -> None:
        """End the emulator."""
        self._emulator.close()

    def legs(self, start: LegStart, path: PathPart) -> list[PathLeg]:
        """What a path achieves, in its order: each goal with the actions since the one before.

        Lasting counters count when the hero has control: a leg ends where the next one can begin. The money of a chest
        may come a step later.
        """
        moments = self.play(start, path).moments
        needed = rupees_needed([moment.rupees for moment in moments], [moment.counters for moment in moments])
        found: list[PathLeg] = []
        for end, (before, after) in enumerate(pairwise(moments), start=1):
            if after.counters != before.counters:
                part = PathPart(path.seed, path.actions[found[-1].end if found else 0 : end])
                money = moments[min(end + 1, len(moments) - 1)].rupees - before.rupees
                found.append(PathLeg(PathGoal(after.counters, needed[end]), part, end, after.group, money))
        return found

    def reach(
        self, start: LegStart, part: PathPart, goal: PathGoal, along: Sequence[Moment] | None = None
    ) -> Arrival | None:
        """Play until the goal is reached and the hero has control; None if the actions do not lead there alive.

        `along` are the moments of a known way, of which the same actions are made: a hero who leaves it is given up.
        """
        arrival = self.play(start, part, goal, along)
        return arrival if arrival.at_goal else None

    def end(self, start: LegStart, part: PathPart) -> LegStart:
        """Where the part leads. Saving that state costs as much as a hundred steps."""
        episode = self._begin(start, part.seed)
        for action in part.actions:
            episode.step(action)
        return episode.end()

    def play(
        self, start: LegStart, part: PathPart, goal: PathGoal | None = None, along: Sequence[Moment] | None = None
    ) -> Arrival:
        """Play the part, or up to the goal, until the hero dies or has left the known way `along` for long.

        Death ends an episode, though the game goes on with full hearts: without this, dying would be a short way.
        """
        episode, at_goal, astray = self._begin(start, part.seed), False, 0
        moments = [episode.moment()]
        for action in part.actions:
            episode.step(action)
            moments.append(episode.moment())
            at_goal = goal is not None and episode.at(goal)
            on_way = along is None or along[len(moments) - 1][:2] == moments[-1][:2]
            astray = 0 if on_way else astray + 1
            if at_goal or episode.died or astray > ASTRAY:
                break
        made = len(moments) - 1
        return Arrival(part.actions[:made], PathQuality.at(episode.state, made).hearts, at_goal, moments)

    def _begin(self, start: LegStart, seed: int) -> "_Episode":
        state = unpack_state(start.state)
        if start.memory is None:
            begin_episode(self._emulator, state, seed, ACTIONS_VERSION)
        else:
            continue_episode(self._emulator, state, ACTIONS_VERSION)
        return _Episode(self._game, self._emulator, self._decoder, self._skip, start.memory)


class _Episode:
    """The running episode of an emulator: its state, and what the hero had when he last had control."""

    def __init__(self, game: Game, emulator: Emulator, decoder: Decoder, skip: int, memory: bytes | None) -> None:
        self._emulator, self._decoder, self._skip = emulator, decoder, skip
        self.state = decoder.begin(emulator.take()[0])
        self._trace = EpisodeTrace(self.state)
        self._counters = EpisodeCounters(self.state, self._trace, game.capabilities)
        if memory is not None:
            EpisodeMemory.from_bytes(memory).restore(self._trace, self._counters)
        self._packed, self._lasting = self._counters.packed, lasting(self._counters.values)
        self._controlled = rupees_of(self.state), self._lasting
        self._deaths = self.state.inventory.deaths

    @property
    def died(self) -> bool:
        return self.state.died_since(self._deaths)

    def step(self, action: int) -> None:
        self._emulator.step(action, self._skip)
        previous, self.state = self.state, self._decoder.decode(*self._emulator.take())
        self._trace.step(self.state, action)
        self._counters.step(previous, self.state, self._trace)
        if self._counters.packed is not self._packed:
            self._packed, self._lasting = self._counters.packed, lasting(self._counters.values)
        if may_restart(self.state):
            self._controlled = rupees_of(self.state), self._lasting

    def at(self, goal: PathGoal) -> bool:
        return may_restart(self.state) and goal.reached(self._lasting, rupees_of(self.state))

    def moment(self) -> Moment:
        return Moment(*self.state.key, self.state.x, self.state.y, *self._controlled)

    def end(self) -> LegStart:
        memory = EpisodeMemory.of(self._trace, self._counters).to_bytes()
        return LegStart(compress_state(self._emulator.save()), memory, self._lasting, rupees_of(self.state))
