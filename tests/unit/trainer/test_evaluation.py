"""Evaluation: one environment takes the best action, the others sample; each plays one episode within a limit."""

from typing import Any

import numpy as np
import pytest
import torch

from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.driver.evaluation import ENVIRONMENTS, Evaluation, EvaluationAborted, step_limit
from services.trainer.rl.epoch_plan import EpochPlan, RolloutResult

ACTIONS, BEST = 8, 2


class Prefers:
    """A policy that likes one action a little more than the others. It remembers how many steps it has seen."""

    memory_size = 1

    def __init__(self) -> None:
        self.memories: list[list[float]] = []

    def step(self, observations: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.memories.append(memory[:, 0].tolist())
        logits = torch.zeros(len(observations), ACTIONS)
        logits[:, BEST] = 0.5
        return logits, memory + 1

    def rows(self, batch: Any) -> torch.Tensor:
        raise AssertionError("nothing is learnt from an evaluation")


class Noted:
    """Eight environments that note the actions; episodes end after these numbers of steps."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths, self.plans = np.array(lengths), list[int]()
        self.actions: list[list[int]] = []

    def begin_epoch(self, plan: EpochPlan) -> None:
        self.plans.append(plan.epoch)
        self.actions = []

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros((ENVIRONMENTS, 1), np.float32), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.actions.append(actions.tolist())
        ended = self.lengths == len(self.actions)
        observations = np.zeros((ENVIRONMENTS, 1), np.float32)
        return observations, np.zeros(ENVIRONMENTS), ended, np.zeros_like(ended), {}

    def collect(self, *, final: bool) -> RolloutResult:
        assert final, "open episodes count as well"
        steps = len(self.actions)
        names = [f"e0000-r9000-v{env:02d}-0000" for env in range(ENVIRONMENTS)]
        return RolloutResult(9_000, [EpisodeSummary(name, steps, float(env)) for env, name in enumerate(names)])


def played(epoch: int, limit: int = 40, lengths: list[int] | None = None) -> tuple[Noted, Prefers, dict[str, float]]:
    games, policy = Noted(lengths or [99] * ENVIRONMENTS), Prefers()
    made: Any = games
    found = Evaluation(lambda count: made, seed=3).run(policy, epoch, limit)
    return games, policy, found


def test_one_environment_takes_the_best_action_and_the_others_sample() -> None:
    games, _, found = played(0)
    best, *sampled = np.array(games.actions).T
    assert set(best.tolist()) == {BEST}
    for actions in sampled:
        assert len(set(actions.tolist())) > 4
    assert (found["episodes"], found["best_action/episodes"]) == (7.0, 1.0)
    assert (found["return_mean"], found["best_action/return_mean"]) == (4.0, 0.0)


def test_each_epoch_samples_other_actions_and_a_repeated_one_the_same() -> None:
    first, again, next_ = (played(epoch)[0].actions for epoch in (0, 0, 1))
    assert first == again != next_


def test_an_evaluation_ends_at_its_limit_or_with_the_last_episode() -> None:
    assert len(played(0, limit=7)[0].actions) == 7
    assert len(played(0, lengths=[3, *[5] * 7])[0].actions) == 5


def test_memory_is_empty_after_the_step_that_resets() -> None:
    _, policy, _ = played(0, limit=4, lengths=[1, *[99] * 7])
    assert [one[0] for one in policy.memories] == [0, 1, 0, 1], "the second step resets the environment"
    assert [one[1] for one in policy.memories] == [0, 1, 2, 3]


def test_an_episode_costs_a_bounded_share_of_its_epoch() -> None:
    assert step_limit(30_000, 300_000) == 3_750
    assert step_limit(30_000, 10_000) == 2_000
    assert step_limit(300, 300_000) == 300


def test_an_aborted_evaluation_has_no_metrics() -> None:
    made: Any = Noted([99] * ENVIRONMENTS)
    evaluation, shares = Evaluation(lambda count: made, seed=3), list[float]()
    with pytest.raises(EvaluationAborted):
        evaluation.run(Prefers(), 0, 10, report=shares.append, aborts=lambda: len(shares) == 4)
    assert shares == [0.0, 0.1, 0.2, 0.3]
