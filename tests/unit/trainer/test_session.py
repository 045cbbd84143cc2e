"""A session learns, and a restored one goes on exactly where the old one stood."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from services.trainer.domain.epoch_metrics import epoch_metrics
from services.trainer.driver.session import TrainingSession
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.rl.epoch_plan import EpochPlan, RolloutResult
from shared.contracts.epoch import SegmentRef
from shared.contracts.ids import Digest, EpisodeId, SegmentId
from shared.errors import Fatal
from shared.game.errors import EmulatorFault
from tests.unit.trainer.corridor_env import Corridor, corridor_session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on every start
]


def session(runners: int = 0, seed: int = 1) -> TrainingSession:
    return corridor_session(runners, seed=seed)


def plan(epoch: int) -> EpochPlan:
    return EpochPlan(epoch)


def test_it_learns_to_walk_to_the_end_of_the_corridor() -> None:
    learner = session()
    learner.begin(lambda numbers: plan(0), 0)
    for _ in range(25):
        learner.iterate()
    metrics = epoch_metrics(learner.summaries[-20:])
    assert metrics["milestones_mean"] > 0.9, metrics
    assert learner.steps == learner.lifetime_steps >= 25 * 1024
    learner.close()


def test_a_restored_session_has_equal_networks_optimiser_scales_and_rng() -> None:
    first = session()
    first.begin(lambda numbers: plan(0), 0)
    for _ in range(3):
        first.iterate()
    first.passes = [LegPass(4, np.ones((3, 2), np.float32), np.arange(3))]
    saved = first.save()
    drawn = torch.rand(3)
    second = session(seed=2)
    second.load(saved)
    assert torch.equal(torch.rand(3), drawn)
    for name, tensor in first.network.state_dict().items():
        assert torch.equal(tensor, second.network.state_dict()[name]), name
    assert second.learner.builder.streams.state() == first.learner.builder.streams.state()
    numbers: dict[str, int] = {}

    def resumed(first_episodes: dict[str, int]) -> EpochPlan:
        numbers.update(first_episodes)
        return EpochPlan(0, first_episodes=first_episodes)

    second.begin(resumed, 0)
    assert (second.iteration, second.steps) == (3, first.steps)
    (kept,) = second.passes
    assert (kept.leg, kept.observations.shape, kept.actions.tolist()) == (4, (3, 2), [0, 1, 2])
    assert min(numbers.values()) > 1  # no episode gets a name that was used before
    again = second.save()
    second.load(again)
    second.iterate()
    for session_ in (first, second):
        session_.close()


def test_a_figure_that_is_no_number_is_neither_taken_in_nor_restored() -> None:
    learner = session()
    learner.begin(lambda numbers: plan(0), 0)
    learner.learner.drain_metrics = lambda: {"steps": 8.0, "entropy": 1.5, "kl": float("inf"), "novelty": float("nan")}
    learner.iterate()
    assert learner.figures == {"entropy": 1.5}
    learner.figures["kl"] = float("nan")  # as drivers of before 2026-11-29 kept it
    learner.load(learner.save())
    learner.begin(lambda numbers: plan(0), 0)
    assert learner.figures == {"entropy": 1.5}
    learner.close()


def test_the_acting_policy_follows_a_rollback_to_an_older_checkpoint() -> None:
    learner = session()
    learner.begin(lambda numbers: plan(0), 0)
    old = learner.save()
    for _ in range(3):
        learner.iterate()
    learner.load(old)
    acting = learner.algorithm.env_runner.module.state_dict()
    wanted = learner.network.state_dict()
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in acting.items())
    learner.close()


def test_runners_keep_no_steps_of_open_episodes_that_the_learner_has() -> None:
    learner = session()
    learner.begin(lambda numbers: plan(0), 0)
    learner.iterate()
    runner = learner.algorithm.env_runner
    assert not runner._rollout.ended.all(), "no episode is open: nothing is shown"
    assert (len(runner._rollout.observations), runner._rollout.steps) == (1, 0)
    learner.close()


class Broken(Corridor):
    """A game that fails on every reset."""

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        raise EmulatorFault("no picture")


def test_a_game_that_always_fails_ends_the_epoch_with_a_sentence() -> None:
    broken = corridor_session(envs=2, batch=128, curiosity=False, env=Broken)
    broken.begin(lambda numbers: plan(0), 0)
    with pytest.raises(Fatal, match="failed 11 times in one epoch"):
        broken.iterate()
    broken.close()


class Stumbling(Corridor):
    """A game that fails once, in the third batch; each collect brings a segment."""

    plans: ClassVar[list[EpochPlan]] = []
    made = 0

    def begin_epoch(self, plan: EpochPlan) -> None:
        self.plans.append(plan)
        super().begin_epoch(plan)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        type(self).made += 1
        if self.made == 150:
            raise EmulatorFault("no picture")
        return super().step(actions)

    def collect(self, *, final: bool) -> RolloutResult:
        name = f"e0000-r00-v00-{self.made:04d}"
        ref = SegmentRef(segment=SegmentId(f"{name}-s000"), episode=EpisodeId(name), key="x", digest=Digest("0" * 64))
        return replace(super().collect(final=final), segments=[ref])


def test_a_game_rebuilt_in_mid_epoch_receives_the_epochs_progress() -> None:
    stumbling = corridor_session(envs=2, batch=128, curiosity=False, env=Stumbling)
    stumbling.begin(lambda numbers: EpochPlan(0, recorded=10), 0)
    for _ in range(2):
        stumbling.iterate()
    done = stumbling.steps
    stumbling.iterate()
    begun, rebuilt = Stumbling.plans
    assert (begun.generation, begun.steps, begun.recorded) == (0, 0, 10)
    assert (rebuilt.generation, rebuilt.steps, rebuilt.recorded) == (
        1,
        done,
        11,
    )  # the second collect is not included yet
    stumbling.close()
