"""RLlibVectorEnv: the games of one env runner as RLlib and the driver see them, rebuilt for every epoch's plan.

It joins games, recording, shaping and start states around a ZeldaVectorEnv. Every epoch gets a new one, because
segments carry the epoch's number; the emulators, which are slow to start, are reused in it.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from services.trainer.domain.backward import longest_pass
from services.trainer.domain.ensemble_disagreement import EnsembleDisagreement
from services.trainer.domain.episodes import EpisodeName
from services.trainer.domain.epoch_metrics import GOAL, LEG, EpisodeSummary
from services.trainer.domain.wait_gate import WaitGate
from services.trainer.env.behaviour_stats import BehaviourStats
from services.trainer.env.config import EnvConfig
from services.trainer.env.curriculum_starts import starts_for
from services.trainer.env.game_session import GameSession
from services.trainer.env.shaping_wrapper import ShapingWrapper
from services.trainer.env.spaces import action_space, observation_space
from services.trainer.env.vector import Rewarder, ZeldaVectorEnv
from services.trainer.guidance.guide import EpisodeIdentity, Guide
from services.trainer.guidance.questions_in_flight import QuestionsInFlight
from services.trainer.other_ways.leg_passes import PassWatch
from services.trainer.other_ways.lost_episodes import LostEpisodes
from services.trainer.planning.assembly import acted_by_policy, is_assisted, takeover_for
from services.trainer.planning.model_planner import ModelPlanner
from services.trainer.planning.plan import PlanMaker
from services.trainer.planning.question import AnswerSource, PacedAnswers
from services.trainer.planning.rules_planner import RulesPlanner
from services.trainer.planning.takeover import Takeover
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import RunnerRecorder
from services.trainer.restarts.collector import CellCollector
from services.trainer.restarts.leg_limits import NO_PROGRESS, LegProgress
from services.trainer.rl import planning_process
from services.trainer.rl.epoch_plan import EpochPlan, RolloutResult
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from shared.contracts.ids import Digest
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import true_start
from shared.game.games.game import Game

EPOCH_STRIDE = 7_919  # a prime: equal episode numbers of two epochs must not get equal seeds
MAX_SEED = 2**31
TRUE_START_NAME = "start"  # of shared.game.emulator.start.true_start


class EpisodeRewarder(Rewarder, Protocol):
    """A rewarder that sums what it added in each episode; ShapingWrapper is one."""

    def pop(self, env: int) -> float:
        """Return the sum of the episode that ended in `env`, and begin the next one."""
        ...


class RLlibVectorEnv(VectorEnv):  # type: ignore[type-arg]
    """`config` is RLlib's `env_config`: the TrainingSessionConfig and `num_envs`."""

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # type: ignore[misc]

    def __init__(self, config: Any) -> None:
        self._games: ZeldaVectorEnv | None = None
        self._recorder: RunnerRecorder | None = None
        self.config: TrainingSessionConfig = config[SESSION_CONFIG]
        self.runner = self.config.runner  # RLlib's runners set their own index, see runners.py
        self.num_envs = int(config["num_envs"])
        run = self.config.run
        self.single_observation_space = observation_space(run.observation, guided=run.guidance.enabled)
        self.single_action_space = action_space(run.options)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._plan = EpochPlan(0)
        self._summaries: list[EpisodeSummary] = []
        self._shaping: EpisodeRewarder | None = None
        self._behaviour = BehaviourStats(self.num_envs)
        self._ended = np.zeros(self.num_envs, np.bool_)
        self.acted: NDArray[np.bool_] | None = None  # whether the policy's action was executed; None: always
        self.held: NDArray[np.bool_] | None = None  # games that stood still in the last step; None: no planner
        self.died = np.zeros(self.num_envs, np.bool_)  # games whose hero died in the last step
        self._answers: PacedAnswers | None = None
        self._gate = WaitGate()
        self._in_flight: QuestionsInFlight | None = None
        self._dropped = 0
        self._collector: CellCollector | None = None
        self._passes: PassWatch | None = None
        self._lost: LostEpisodes | None = None
        self._seen: NDArray[Any] = np.zeros(0)  # before the next step
        self._game: Game | None = None
        self._emulators: list[Emulator] = []

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Close the last epoch's games but keep their emulators. The next reset builds the games of the new plan."""
        if self._games is not None:
            released = [session.release() for session in self._games.sessions]
            self._emulators = [emulator for emulator in released if emulator is not None]
        self._close_games()
        self._plan, self._summaries, self._dropped = plan, [], 0

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment. RLlib's seed is ignored: it would restart the episode numbers."""
        if self._games is None:
            self._games = self._build()
        observations, _ = self._games.reset()
        self._collect_states(self._games.sessions)
        self._seen = observations
        self._watch_passes(np.zeros(self.num_envs, np.int64), np.ones(self.num_envs, np.bool_))
        self._behaviour.begin()
        self._ended[:] = False
        return observations, {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every environment. Summaries of ended episodes wait for `collect` and do not pass through RLlib."""
        games = self._open_games()
        observations, rewards, terminated, truncated, infos = games.step(actions)
        self._behaviour.update(games.sessions, games.held)
        rewards += self._collect_states(games.sessions)
        self.died = games.died
        if is_assisted(self.config.run) or self.config.run.options != "none":
            self.acted, self.held = acted_by_policy(games.sessions), games.held
        self._watch_passes(actions, self._ended | self.died)  # what led to a death is not imitated
        self._seen = observations
        self._ended = terminated | truncated
        for env in np.flatnonzero(self._ended):
            self._summaries.append(self._summary(int(env), infos["report"][env]))
        return observations, rewards, terminated, truncated, {}

    def collect(self, *, final: bool) -> RolloutResult:
        """What is new since the last call; see EpochVectorEnv."""
        found, self._summaries = self._summaries, []
        games = self._games
        if games is None:
            return RolloutResult(self.runner, found)
        if final:
            found += [self._cut_short(int(env)) for env in np.flatnonzero(~self._ended)]
        numbers = {f"{self.runner}/{env}": session.episode.number for env, session in enumerate(games.sessions)}
        states, visits = ([], {}) if self._collector is None else self._collector.drain()
        passes = [] if self._passes is None else self._passes.drain()
        passes += [] if self._lost is None else self._lost.drain()
        result = RolloutResult(self.runner, found, next_episodes=numbers, states=states, visits=visits, passes=passes)
        recorder = self._recorder
        if recorder is None:
            return result
        if final:
            recorder.close()
        before, self._dropped = self._dropped, recorder.dropped  # read once: the writer's thread counts on
        return replace(result, segments=recorder.written(), dropped=self._dropped - before)

    def close_extras(self, **kwargs: Any) -> None:
        """End the emulators and the recording."""
        self._close_games()
        for emulator in self._emulators:
            emulator.close()
        self._emulators = []
        if self._lost is not None:
            self._lost.close()
            self._lost = None

    def _build(self) -> ZeldaVectorEnv:
        """Build the games of the present plan, numbered and seeded for it."""
        plan, run = self._plan, self.config.run
        config = self.config.environment(num_envs=self.num_envs, runner=self.runner, threads=self.config.threads)
        self._game = game = self._game or self.open_game(config)
        self._recorder = self._new_recorder(config)
        games = ZeldaVectorEnv(config, self._new_shaping(), game, self._recorder)
        if self.config.curriculum:
            games.set_starts(starts_for(game, run, self.config.curriculum))
        starts = plan.starts if plan.restarts is None else plan.restarts.starts
        if starts:
            games.set_starts([start or true_start(game) for start in starts])
        self._collector = self._new_collector()
        self._passes = self._new_pass_watch()
        self._lost = self._lost_episodes(config, game)
        for env, session in enumerate(games.sessions):
            if self._emulators:
                session.adopt(self._emulators.pop())
            takeover = takeover_for(run, game, self._plan_maker(env, session))
            if takeover is not None:
                session.takeover = takeover
                session.guide = self._new_guide(env, session, takeover) if run.guidance.asks else None
            session.reseed((run.seed + EPOCH_STRIDE * plan.epoch) % MAX_SEED)
            session.skip_to(plan.first_episode(f"{self.runner}/{env}"))
        return games

    def _plan_maker(self, env: int, session: GameSession) -> PlanMaker:
        """What plans for one environment."""
        if self.config.run.planner.mode != "model":
            return RulesPlanner()
        epoch = self._plan.epoch

        def episode() -> tuple[int, str]:
            return epoch, EpisodeName(epoch, self.runner, env, session.episode.number).id

        return ModelPlanner(self._models(), self._gate, self.config.run.planner, episode)

    def _new_guide(self, env: int, session: GameSession, takeover: Takeover) -> Guide:
        """Guidance of one environment."""
        config, epoch = self.config.run.guidance, self._plan.epoch
        if self._in_flight is None:
            self._in_flight = QuestionsInFlight(config.max_in_flight)

        def identity() -> EpisodeIdentity:
            number = session.episode.number
            seed = (self.config.run.seed, epoch, self.runner, env, number)
            return EpisodeIdentity(epoch, EpisodeName(epoch, self.runner, env, number).id, seed)

        shared = self._in_flight, self._gate
        return Guide(self._models(), config, takeover, shared, identity, self.config.run.frame_skip)

    def _models(self) -> PacedAnswers:
        """The models of this process: its environments share their pauses."""
        if self._answers is None:
            self._answers = PacedAnswers(self.connect_models())
        return self._answers

    def connect_models(self) -> AnswerSource:
        """The way to the process that calls models. Tests override it."""
        return planning_process.connect()

    def open_game(self, config: EnvConfig) -> Game:
        """The game that the configuration names. Benchmarks override it."""
        return config.open_game()

    def _new_recorder(self, config: EnvConfig) -> RunnerRecorder | None:
        """Build the epoch's recorder."""
        recording, model = self._recording_config(), self._plan.reward_model
        if recording is None:
            return None
        return RunnerRecorder(config, recording, None if model is None else EnsembleDisagreement.from_bytes(model))

    def _recording_config(self) -> RecordingConfig | None:
        """Return what the epoch records; it spreads the rest of the budget over the rest of the steps.

        An epoch without judges has no budget left: its recorder only serves the live picture.
        """
        if self.config.store is None:
            return None
        plan, run = self._plan, self.config.run
        return RecordingConfig(
            run=self.config.run_id,
            epoch=plan.epoch,
            store=self.config.store,
            sampling=run.sampling,
            epoch_steps=max(1, run.epoch_steps - plan.steps),
            recorded=plan.recorded if run.judges_epoch(plan.epoch) else run.sampling.budget,
            runners=max(1, run.env_runners),
            checkpoint=Digest(plan.checkpoint) if plan.checkpoint else None,
            reward_model=Digest(plan.reward_model_digest) if plan.reward_model_digest else None,
        )

    def _new_collector(self) -> CellCollector | None:
        one = self._plan.restarts
        if one is None:
            return None
        return CellCollector(self.num_envs, one.known, one.paths, one.goal, one.tiles_per_cell, one.legs)

    def _new_pass_watch(self) -> PassWatch | None:
        """Build what watches passes, where the policy imitates them: no planner acts in such a run."""
        restarts = self._plan.restarts
        if restarts is None or not restarts.legs or not self.config.run.imitation.of_archive:
            return None
        return PassWatch(self.num_envs, [longest_pass(leg) for leg in restarts.legs])

    def _lost_episodes(self, config: EnvConfig, game: Game) -> LostEpisodes | None:
        """What shows lost episodes of the plan the way back; its emulator serves all epochs."""
        trail = None if self._plan.restarts is None else self._plan.restarts.trail
        if self._lost is None and trail is not None:
            self._lost = LostEpisodes(config, game)
        if self._lost is not None:
            self._lost.begin_epoch(trail)
        return self._lost

    def _collect_states(self, sessions: Sequence[GameSession]) -> NDArray[np.float64]:
        """Collect what the archive wants; return the rewards (N,) for the goals that were reached."""
        rewards = np.zeros(self.num_envs)
        if self._collector is not None:
            for env, session in enumerate(sessions):
                if any(passed := self._collector.look(env, session)):
                    rewards[env] = sum(self._paid(passed).values())
                if self._lost is not None and (lost := self._collector.lost(env)):
                    self._lost.look(session, lost)
        return rewards

    def _watch_passes(self, actions: Any, began: NDArray[np.bool_]) -> None:
        """Note what each environment's episode saw and did in the last step; where it `began`, only its leg."""
        if self._passes is None or self._collector is None:
            return
        for env, action in enumerate(actions):
            leg = self._collector.next_leg(env)
            if began[env]:
                self._passes.begin(env, leg)
            else:
                chosen = self.acted is None or self.acted[env]
                self._passes.add(env, self._seen[env], int(action) if chosen else None, leg)

    def _paid(self, passed: LegProgress) -> dict[str, float]:
        """The rewards for what was passed on the curriculum's trajectory, by term."""
        restarts = self.config.run.restarts
        return {"goal": passed.goals * restarts.goal_reward, "trail": passed.points * restarts.trail_reward}

    def _new_shaping(self) -> EpisodeRewarder | None:
        plan, run = self._plan, self.config.run
        self._shaping = None
        if plan.reward_model is not None and run.shaping.mode != "none":
            discount = self.config.ppo.discount
            self._shaping = ShapingWrapper(self.num_envs, run.shaping, discount, plan.reward_model)
        return self._shaping

    def _summary(self, env: int, report: dict[str, Any]) -> EpisodeSummary:
        """Summarise an ended episode under the names of the epoch's metrics."""
        terms = dict(report["terms"])
        total = float(report["total"])
        if self._shaping is not None:
            terms["shaping"] = self._shaping.pop(env)
            total += terms["shaping"]
        guide = self._open_games().sessions[env].guide
        if guide is not None:
            terms["guidance"] = guide.paid
            total += guide.paid
        if self.config.run.restarts.backward:
            paid = self._paid(NO_PROGRESS if self._collector is None else self._collector.passed(env))
            terms |= paid
            total += sum(paid.values())
        facts = {
            "rooms": float(report["rooms"]),
            "tiles": float(report["tiles"]),
            "milestones": float(report["milestones"]),
            "milestones_share": report["milestones"] / max(1, report["milestones_total"]),
            "deaths": float(report["deaths"]),
            "finished": float(report["finished"]),
            **self._behaviour.pop(env),
            **self._assistance_facts(env),
            **self._goal_facts(env),
        }
        return EpisodeSummary(
            episode=EpisodeName(self._plan.epoch, self.runner, env, report["episode"]).id,
            steps=int(report["steps"]),
            reward=total,
            terms=terms,
            facts=facts,
            complete=not report.get("cut", False),
            from_start=report["start"] == TRUE_START_NAME,
            start=report["start"],
        )

    def _goal_facts(self, env: int) -> dict[str, float]:
        collector = self._collector
        if collector is None or collector.goal is None:
            return {}
        return {GOAL: float(collector.reached_goal(env)), LEG: float(collector.next_leg(env))}

    def _assistance_facts(self, env: int) -> dict[str, float]:
        session = self._open_games().sessions[env]
        run = self.config.run
        takeover = session.takeover if run.planner.mode != "none" or run.options != "none" else None
        facts = {} if takeover is None else takeover.facts()
        return facts if session.guide is None else facts | session.guide.facts()

    def _cut_short(self, env: int) -> EpisodeSummary:
        """Summarise an episode that the end of the epoch cut short."""
        session = self._open_games().sessions[env]
        return self._summary(env, asdict(session.report()) | {"cut": True})

    def _open_games(self) -> ZeldaVectorEnv:
        if self._games is None:
            raise RuntimeError("step before reset: call reset after begin_epoch")
        return self._games

    def _close_games(self) -> None:
        if self._games is not None:
            self._games.close()
            self._games = None
