"""A training session: one RLlib algorithm that stays warm from epoch to epoch, and everything needed to restore it.

The driver and studies use it. It knows neither bus nor store.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from math import isfinite
from typing import Any

import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from services.trainer.domain.assistance import epoch_assistance
from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.driver.checkpoint import (
    Checkpoint,
    optimizer_tensors,
    pack,
    random_state,
    restore_optimizer,
    restore_random,
    unpack,
)
from services.trainer.imitation.demonstrations import Demonstrations
from services.trainer.imitation.loss import ImitationLoss
from services.trainer.other_ways.leg_passes import LegPass, newest, pack_passes, unpack_passes
from services.trainer.restarts.collector import CollectedState
from services.trainer.restarts.pack import pack_states, pack_visits, unpack_states, unpack_visits
from services.trainer.rl import algorithm
from services.trainer.rl.epoch_plan import EpochPlan, RolloutResult, next_episodes
from services.trainer.rl.learners.learner_replicas import LearnerReplicas
from services.trainer.rl.planning_process import PlanningProcess
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.runners import EpochPlanCallback, begin_epoch, collect
from services.trainer.rl.session_config import TrainingSessionConfig
from services.trainer.state_archive.cell import ArchiveCell
from shared.contracts.driver import Assistance, ModelCalls, QuestionMode
from shared.contracts.epoch import SegmentRef
from shared.errors import Fatal, Permanent

STANDSTILL_S = 900.0
"""Without a batch for this long the driver ends and is restarted: its runners find no room or never answer. It exceeds
`algorithm.SAMPLE_TIMEOUT_S`, so that one late batch is forgiven."""


class TrainingSession:
    """Policy, learner and environment runners, and the progress of the epoch they are in."""

    def __init__(
        self, config: TrainingSessionConfig, env: type = RLlibVectorEnv, planning: PlanningProcess | None = None
    ) -> None:
        """`env` implements `EpochVectorEnv`; it is built in every env runner. `planning` ends with the session."""
        torch.set_num_threads(threads(config.run.env_runners))
        self.config, self.planning = config, planning
        self.algorithm = algorithm.build(config, env, EpochPlanCallback)
        self.replicas: LearnerReplicas | None = None
        if config.run.learners > 1:
            self.replicas = LearnerReplicas(self.learner, config.run.learners)
            self.learner.share_with(self.replicas)
        self.epoch = -1
        self.iteration = 0
        self.steps = 0
        self.lifetime_steps = 0
        self.seconds = 0.0
        self.steps_per_s = 0.0
        self.attempts = 1
        self.figures: dict[str, float] = {}
        self.summaries: list[EpisodeSummary] = []
        self.segments: dict[str, SegmentRef] = {}
        self.dropped = 0
        self.states: list[CollectedState] = []
        self.visits: Counter[ArchiveCell] = Counter()
        self.passes: list[LegPass] = []
        self._idle_s = 0.0
        self._counters: dict[str, int] = {}
        self._resumed: dict[str, Any] | None = None

    @property
    def learner(self) -> Any:
        """RLlib's learner object; it lives in this process."""
        return self.algorithm.learner_group._learner

    @property
    def network(self) -> Any:
        """The learner's module: policy and critics."""
        return self.learner.module[DEFAULT_MODULE_ID].unwrapped()

    def begin(self, plan: Callable[[dict[str, int]], EpochPlan], epoch: int) -> None:
        """Start `epoch`, or continue it if a checkpoint from within it was loaded.

        `plan` receives the numbers of the next episodes by `{runner}/{env}` and returns the environments' plan.
        """
        within = self._resumed if self._resumed is not None and self._resumed["epoch"] == epoch else {}
        self.epoch = epoch
        self.iteration = within.get("iteration", 0)
        self.steps = within.get("steps", 0)
        self.seconds = within.get("seconds", 0.0)
        self.attempts = within.get("attempts", 0) + 1
        self.figures = finite(within.get("figures", {}))
        self.summaries = [EpisodeSummary(**summary) for summary in within.get("summaries", [])]
        self.dropped = within.get("dropped", 0)
        self.states = unpack_states(within.get("archive_states", []))
        self.visits = unpack_visits(within.get("archive_visits", []))
        self.passes = unpack_passes(within.get("leg_passes", ""))
        self._counters = {place: number + 1 for place, number in within.get("episodes", {}).items()}
        self._resumed, self.segments = None, {}
        if self.planning is not None:
            self.planning.begin(epoch)
        begin_epoch(self.algorithm, plan(self._counters))

    def imitate(self, demonstrations: Demonstrations | None, weight: float = 1.0) -> None:
        """Imitate these steps beside PPO from now on; None imitates nothing. `weight` multiplies the run's own."""
        coefficient = weight * self.config.run.imitation.coefficient
        self.learner.imitation = None if demonstrations is None else ImitationLoss(demonstrations, coefficient)

    def iterate(self) -> None:
        """Sample one batch and learn from it."""
        started = time.perf_counter()
        self.learner.done = self.lifetime_steps / max(1, self.config.planned_steps)
        self.algorithm.train()
        figures = self.learner.drain_metrics()
        took = time.perf_counter() - started
        steps = int(figures.pop("steps", 0))
        self.figures = finite(figures) or self.figures  # nothing is learnt while all runners are down
        self.iteration += 1
        self.steps += steps
        self.lifetime_steps += steps
        self.seconds += took
        self.steps_per_s = steps / took
        self.collect(final=False)
        self._idle_s = 0.0 if steps else self._idle_s + took
        if self._idle_s > STANDSTILL_S:
            raise Fatal(
                f"the env runners returned no batch for {self._idle_s:.0f} s: `ray status` shows what they wait for; "
                f"if they do play, a batch takes more than {algorithm.SAMPLE_TIMEOUT_S:.0f} s: lower batch_size"
            )

    def collect(self, *, final: bool) -> None:
        """Collect episode summaries and segments from all runners; with `final`, wait until segments are stored."""
        results: list[RolloutResult] = collect(self.algorithm, final=final, steps=self.steps)
        for result in results:
            self.summaries += result.summaries
            self.segments |= {ref.segment: ref for ref in result.segments}
            self.dropped += result.dropped
            self.states += result.states
            self.visits.update(result.visits)
            self.passes = newest([*self.passes, *result.passes])
        self._counters |= next_episodes(results)

    def save(self) -> bytes:
        """Pack the present state into a checkpoint."""
        optimizer = self.learner.get_optimizer(DEFAULT_MODULE_ID)
        state = {
            "observation": self.config.run.observation,
            "actions": self.config.run.actions,
            "options": self.config.run.options,
            "memory": self.config.run.memory,
            "epoch": self.epoch,
            "iteration": self.iteration,
            "steps": self.steps,
            "lifetime_steps": self.lifetime_steps,
            "seconds": self.seconds,
            "attempts": self.attempts,
            "episodes": self._counters,
            "summaries": [asdict(summary) for summary in self.summaries],
            "dropped": self.dropped,
            "archive_states": pack_states(self.states),
            "archive_visits": pack_visits(self.visits),
            "leg_passes": pack_passes(self.passes),
            "figures": self.figures,
            "streams": self.learner.builder.streams.state(),
            "random": random_state(),
        }
        weights = {name: tensor.detach() for name, tensor in self.network.state_dict().items()}
        return pack(Checkpoint(weights, optimizer_tensors(optimizer), state))

    def load(self, data: bytes) -> None:
        """Restore a checkpoint's policy, optimiser, statistics, generators and progress, here and on the runners."""
        checkpoint = unpack(data)
        # Checkpoints of earlier versions name no actions, options or memory.
        for name, trained in (
            ("observation", checkpoint.state["observation"]),
            ("actions", checkpoint.state.get("actions", "actions/v1")),
            ("options", checkpoint.state.get("options", "none")),
            ("memory", checkpoint.state.get("memory", "none")),
        ):
            wanted = getattr(self.config.run, name)
            if trained != wanted:
                raise Permanent(
                    f"the checkpoint was trained on {name} {trained!r}, this run uses {wanted!r}: start a new run"
                )
        self.network.load_state_dict(checkpoint.weights)
        restore_optimizer(self.learner.get_optimizer(DEFAULT_MODULE_ID), checkpoint.optimizer)
        self.learner.builder.streams.restore(checkpoint.state["streams"])
        restore_random(checkpoint.state["random"])
        self.lifetime_steps = checkpoint.state["lifetime_steps"]
        self._resumed = checkpoint.state
        self._push_weights()

    def _push_weights(self) -> None:
        """Push the weights to all runners. They refuse older weights, so a rollback resets their sequence number."""
        group = self.algorithm.env_runner_group
        group.foreach_env_runner(lambda runner: setattr(runner, "_weights_seq_no", 0))
        group.sync_weights(from_worker_or_learner_group=self.algorithm.learner_group, inference_only=True)

    def close(self) -> None:
        """Stop runners, environments, other learners and the planning process."""
        if self.replicas is not None:
            self.replicas.close()
        self.algorithm.stop()
        if self.planning is not None:
            self.planning.close()

    @property
    def model_calls(self) -> dict[QuestionMode, ModelCalls]:
        """Calls of models in this epoch; empty for a run that asks none."""
        return {} if self.planning is None else self.planning.figures()

    def assistance(self, *, final: bool) -> Assistance | None:
        """Who helped the policy in this epoch so far; `final` waits for the newest calls of models."""
        newest = {} if self.planning is None else self.planning.newest_figures()
        return epoch_assistance(self.summaries, self.model_calls if final else newest)


def finite(figures: Mapping[str, float]) -> dict[str, float]:
    """The figures that are numbers. The record of an epoch refuses NaN and infinity, so one would block the run.

    Checkpoints of before 2026-11-29 may hold some.
    """
    return {name: value for name, value in figures.items() if isfinite(value)}


def threads(runners: int) -> int:
    """Torch threads of this process: one if it also samples, because OpenMP's spinning starves the emulators."""
    return 1 if runners == 0 else min(4, os.cpu_count() or 1)
