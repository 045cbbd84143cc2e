"""One game being played: emulator, decoder, memory, observation and rewards, one step at a time.

The environments of Gymnasium are thin shells around it. An episode's course depends on (seed, runner, env, episode
number) and the actions alone, so that any episode can be played again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np

from services.trainer.env.config import EnvConfig
from services.trainer.env.detectors import Detectors
from services.trainer.env.pixels import PixelEncoder
from services.trainer.env.rewards import RewardProfile, Rewards
from services.trainer.env.terms import Transition
from services.trainer.env.who_acts import ActionSource, SuggestionSource
from services.trainer.options.option_runner import OptionRunner
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.names import ACTIONS
from shared.game.decoding.state import GameState
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import StartState, load_episode, seed_episode, true_start
from shared.game.games.game import Game
from shared.game.observation.counters import EpisodeCounters
from shared.game.observation.encoder import Encoder, Observation, VectorEncoder
from shared.game.observation.episode_memory import EpisodeMemory
from shared.game.observation.trace import EpisodeTrace
from shared.game.observation.versions import FEATURES, FeatureObservation
from shared.game.observation.with_guidance import GuidedObservation
from shared.game.recording.segment import PLANNER, POLICY

START_OF_BUTTONS: Final = ACTIONS.index("a")  # wait comes before the directions, the buttons after them
MAX_SEED: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class EpisodeReport:
    """The result of an episode, issued once at its end."""

    episode: int
    start: str
    steps: int
    total: float
    terms: dict[str, float]
    rooms: int
    tiles: int
    milestones: int
    milestones_total: int
    deaths: int
    finished: bool


class StepResult(NamedTuple):
    """The result of one step, in Gymnasium's terms."""

    observation: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    report: EpisodeReport | None = None
    died: bool = False
    """The hero dies in this step. The steps until he can go on belong to the same death."""


class EpisodeRecorder(Protocol):
    """What a session reports to its recorder."""

    def begin_episode(self, session: "GameSession") -> None:
        """An episode has begun."""
        ...

    def needs_picture(self, step: int) -> bool:
        """Whether this step of the episode must be drawn."""
        ...

    def add_step(self, session: "GameSession", result: StepResult) -> None:
        """A step was made. The episode has ended if the result has a report."""
        ...


@dataclass(slots=True)
class Episode:
    """The running episode."""

    number: int
    seed: int
    start: StartState
    steps: int = 0
    total: float = 0.0
    actions: bytearray = field(default_factory=bytearray)
    actors: bytearray = field(default_factory=bytearray)
    """Who chose each action; empty without a planner."""


class GameSession:
    """Plays episodes of one game. Not thread-safe; two sessions may run in two threads."""

    def __init__(
        self,
        config: EnvConfig,
        env: int = 0,
        recording: EpisodeRecorder | None = None,
        game: Game | None = None,
        window: str = "null",
    ) -> None:
        """`env` is the index of this environment within its runner; `game` replaces the configured one.

        With `window` "SDL2" a person can watch, at the speed of the game.
        """
        self._window = window
        self.config, self.env = config, env
        self._frame_skip, self._episode_length = config.frame_skip, config.episode_length
        self.game = game or config.open_game()
        self._emulator: Emulator | None = None
        self.recording = recording  # may be changed between episodes
        # Who acts beside the policy, and who advises it; to be set before the first reset.
        self.takeover: ActionSource | None = None if config.options == "none" else OptionRunner(config.options)
        self.guide: SuggestionSource | None = None  # it needs a takeover, which knows who acts
        self._rewards = Rewards(RewardProfile.load(config.rewards))
        self.decoder = Decoder(self.game.capabilities)
        self.vector = VectorEncoder(self.game.capabilities)
        self.pixels: Encoder | None = None
        self._observation = FeatureObservation(config.observation)
        self._guided = GuidedObservation(len(FEATURES[config.observation])) if config.guided else None
        self.seed, self._count = config.seed, 0
        self.starts: Sequence[StartState] = ()
        self.image = b""
        self.features: Observation = np.zeros(self.vector.shape, np.float32)
        self._reached: list[bool] = []

    @property
    def emulator(self) -> Emulator:
        """The emulator, created on first use: building an environment stays cheap."""
        if self._emulator is None:
            return self.adopt(Emulator(self.game, self._window))
        return self._emulator

    def adopt(self, emulator: Emulator) -> Emulator:
        """Play on this running emulator of the same game: every episode begins with a load, so none shows another's."""
        self._emulator = emulator
        if self.config.observation == "pixels/v1":
            self.pixels = PixelEncoder(emulator)
        return emulator

    def release(self) -> Emulator | None:
        """Give away the running emulator, if there is one; `close` then has nothing to end."""
        emulator, self._emulator = self._emulator, None
        return emulator

    def set_starts(self, starts: Sequence[StartState]) -> None:
        """Set where episodes begin from the next reset on, drawn uniformly. Empty means the game's true start."""
        self.starts = tuple(starts)

    def reseed(self, seed: int) -> None:
        """Restart the numbering of episodes under another seed."""
        self.seed, self._count = seed, 0

    def skip_to(self, episode: int) -> None:
        """Give the next episode this number: a restarted runner continues the numbering of the lost one."""
        self._count = episode

    def reset(self) -> np.ndarray:
        """Begin the next episode and return its first observation."""
        rng = np.random.default_rng([self.seed, self.config.runner, self.env, self._count])
        word = int(rng.integers(1, MAX_SEED + 1))
        start = self.starts[int(rng.integers(len(self.starts)))] if self.starts else true_start(self.game)
        moves = rng.integers(1, START_OF_BUTTONS, int(rng.integers(start.opening + 1))) if start.opening else ()
        return self.begin(start, word, [int(move) for move in moves])

    def begin(self, start: StartState, word: int, opening: Sequence[int] = ()) -> np.ndarray:
        """Begin the next episode at this state, with the game's random generator seeded by `word` (16 bits, not 0).

        The actions of `opening` are made before the first observation. They are part of the episode, and pay nothing.
        """
        emulator = self.emulator
        self.episode = Episode(self._count, word, start)
        self._count += 1
        self._longest = min(self._episode_length, start.length or self._episode_length)
        load_episode(emulator, start.state, self.config.actions)
        loaded, at_rest = emulator.take()
        before = self.decoder.begin(loaded) if at_rest and start.memory is not None else None
        seed_episode(emulator, word)
        self.image, _ = emulator.take()
        self.state = self.decoder.begin(self.image)
        self.trace = EpisodeTrace(self.state)
        self.counters = EpisodeCounters(before or self.state, self.trace, self.game.capabilities)
        if start.memory is not None:
            EpisodeMemory.from_bytes(start.memory).restore(self.trace, self.counters)
        if before is not None:  # what came in the frames since the load is news to an episode that goes on
            self.counters.step(before, self.state, self.trace)
        self.detectors = Detectors(self.state)
        self._transition = Transition(self.state, self.state, 0, self.trace, self.detectors)
        self._rewards.begin(self.state)
        self._terminal_on_death = self.config.terminal_on_death or start.ends_with_death
        reached = self.image if before is None else loaded
        self._reached = [milestone.reached(reached) for milestone in self.game.milestones]
        self._done = all(self._reached)  # also for a game without milestones, which nothing finishes
        self.features = self.vector.begin(self.state, self.trace)
        if opening and self._dies_in(opening):
            self._count -= 1
            return self.begin(start, word)
        if self.takeover is not None:
            self.takeover.begin()
        if self.guide is not None:
            self.guide.begin(self.episode.steps)
        if self.recording is not None:
            self.recording.begin_episode(self)
        return self._seen() if self.pixels is None else self.pixels.begin(self.state, self.trace)

    def _dies_in(self, opening: Sequence[int]) -> bool:
        """Make the actions of an opening; True if one of them ended the episode."""
        if self.pixels is not None:
            self.pixels.begin(self.state, self.trace)
        for action in opening:
            self.emulator.step(action, self._frame_skip, True)
            self.image, fresh = self.emulator.take()
            previous, self.state = self.state, self.decoder.decode(self.image, fresh)
            if self._evaluate(previous, self.state, action).report is not None:
                return True
            if self.takeover is not None:
                self.episode.actors.append(POLICY)
        self._rewards.begin(self.state)
        self.episode.total = 0.0
        return False

    def allow(self, steps: int) -> None:
        """Truncate the running episode after so many steps more, or at the run's `episode_length`."""
        self._longest = min(self._episode_length, self.episode.steps + steps)

    @property
    def steps_left(self) -> int:
        """Steps until the running episode is truncated."""
        return self._longest - self.episode.steps

    def holds(self) -> bool:
        """Whether this environment stands still now: its planner or its guide waits for a model."""
        if self.takeover is not None and self.takeover.holds(self.state, self.image):
            return True
        return self.guide is not None and self.guide.holds()

    def observed(self) -> np.ndarray:
        """The present observation again: while it stands still, only the suggestion changes."""
        return self._seen()

    def step(self, action: int) -> StepResult:
        """Make one step. Raises EmulatorFault."""
        if self.takeover is not None:
            action = self.takeover.choose(self.state, self.image, action)
            self.episode.actors.append(self.takeover.actor)
        recording, emulator, number = self.recording, self._emulator or self.emulator, self.episode.steps + 1
        drawn = recording is not None and recording.needs_picture(number)
        bonus = 0.0
        guide = None if self.guide is None or self.guide.next_step > number else self.guide
        if guide is not None:
            drawn = guide.needs_picture(number) or drawn
            by_policy = self.takeover is None or self.takeover.actor != PLANNER
            bonus = guide.pay(action, self.episode.total, by_policy=by_policy)
        emulator.step(action, self._frame_skip, drawn or self.pixels is not None)
        self.image, fresh = image, _ = emulator.take()
        previous, self.state = self.state, self.decoder.decode(image, fresh)
        if guide is not None:
            guide.look(number, self.state, image, self.picture)
        outcome = self._evaluate(previous, self.state, action)
        if self.guide is not None and outcome.report is not None:
            bonus += self.guide.settle(self.episode.total)
        if bonus:  # paid beside the game's rewards: it is no part of the return that caps it
            outcome = outcome._replace(reward=outcome.reward + bonus)
        if recording is not None:
            recording.add_step(self, outcome)
        return outcome

    @cached_property
    def rom_digest(self) -> str:
        """SHA-256 of the ROM."""
        return self.game.digest

    def picture(self) -> np.ndarray:
        """The picture of the last drawn step, uint8 (144, 160, 3)."""
        return self.emulator.screen()

    def close(self) -> None:
        """End the emulator."""
        if self._emulator is not None:
            self._emulator.close()
            self._emulator = None

    @property
    def milestones(self) -> int:
        """Milestones reached so far, including those of the start state."""
        return sum(self._reached)

    @property
    def milestones_reached(self) -> list[bool]:
        """Which of the game's milestones are reached, in their order."""
        return list(self._reached)

    @property
    def term_sums(self) -> dict[str, float]:
        """The sum of each reward term in this episode so far."""
        return dict(self._rewards.sums)

    def report(self) -> EpisodeReport:
        """The report of the running episode so far."""
        return self._report(finished=False)

    def _evaluate(self, previous: GameState, state: GameState, action: int) -> StepResult:
        """Reward, ending and observation of the step from `previous` to `state`."""
        episode, trace, transition = self.episode, self.trace, self._transition
        trace.step(state, action)
        self.counters.step(previous, state, trace)
        self.detectors.step(previous, state)
        finished = False
        if state.scene is not previous.scene or state.dying or not episode.steps:
            finished = self._reach_milestones(previous, state)
        transition.previous, transition.state, transition.action = previous, state, action
        reward = self._rewards.step(transition)
        episode.steps += 1
        episode.total += reward
        episode.actions.append(action)
        died = self.detectors.died
        terminated = finished or (died and self._terminal_on_death)
        truncated = not terminated and episode.steps >= self._longest
        self.features = self.vector.step(state, trace)
        seen = self._seen() if self.pixels is None else self.pixels.step(state, trace)
        report = self._report(finished) if terminated or truncated else None
        return StepResult(seen, reward, terminated, truncated, report, died)

    def _seen(self) -> np.ndarray:
        """What the policy sees of features, counters, surroundings, progress and suggestion."""
        seen = self._observation.of(self.features, self.state, self.image, self.trace, self.counters)
        if self._guided is None:
            return seen
        return self._guided.of(seen, None if self.guide is None else self.guide.features())

    def _reach_milestones(self, previous: GameState, state: GameState) -> bool:
        """Check for new milestones where progress or inventory changed, and in the first step, because the game ran
        before it; True when the last one was just reached."""
        reached = self._reached
        same = self.episode.steps and previous.inventory is state.inventory and previous.progress is state.progress
        if self._done or same:
            return False
        for place, milestone in enumerate(self.game.milestones):
            if not reached[place]:
                reached[place] = milestone.reached(self.image)
        self._done = all(reached)
        return self._done

    def _report(self, finished: bool) -> EpisodeReport:
        return EpisodeReport(
            episode=self.episode.number,
            start=self.episode.start.name,
            steps=self.episode.steps,
            total=self.episode.total,
            terms=dict(self._rewards.sums),
            rooms=len(self.trace.rooms),
            tiles=self.trace.tiles,
            milestones=self.milestones,
            milestones_total=len(self._reached),
            deaths=self.detectors.deaths,
            finished=finished,
        )
