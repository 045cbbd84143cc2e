"""A recurrent policy learns what no policy without memory can, and keeps its memory where an episode goes on."""

from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns

from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.driver.evaluation import Evaluation
from services.trainer.driver.session import TrainingSession
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.networks.policy_network import BEGINS, MEMORY
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.run import MemoryName
from shared.errors import Permanent
from tests.unit.trainer.corridor_env import Corridor, corridor_session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on every start
]
WAIT = 6  # steps between the sign and the question


class Recall(Corridor):
    """A T-maze (Bakker 2001): a sign shows 2 or 3 in the first step; the action of that number in the last step pays.

    The steps between look alike, so only memory knows the answer.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.rng = np.random.default_rng(self.runner)
        self.sign = np.zeros(self.num_envs, int)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        fresh = self.ended.copy()
        self._restart(fresh)
        asked = (self.time == WAIT) & ~fresh
        self.time += ~fresh
        right = asked & (actions == self.sign)
        self.ended = asked
        for env in np.flatnonzero(asked):
            name = f"e{self.plan.epoch:04d}-r{self.runner:02d}-v{env:02d}-{self.number[env]:04d}"
            facts = {"milestones": float(right[env])}
            self.summaries.append(EpisodeSummary(name, int(self.time[env]), float(right[env]), {}, facts))
        return self._observations(), np.where(right, 1.0, 0.0), asked, np.zeros_like(asked), {}

    def _restart(self, which: Any) -> None:
        super()._restart(which)
        if which.any():
            self.sign[which] = self.rng.integers(2, 4, int(which.sum()))

    def _observations(self) -> Any:
        seen = np.zeros((self.num_envs, 128), np.float32)
        seen[np.arange(self.num_envs), 10 + self.time] = 1.0
        first = self.time == 0
        seen[first, self.sign[first]] = 1.0
        return seen


def recall_session(memory: MemoryName, **options: Any) -> TrainingSession:
    hyper = PpoConfig(learning_rate=1e-3)  # the default learns it as well, in three times as many steps
    found = corridor_session(curiosity=False, env=Recall, memory=memory, hyper=hyper, **options)
    found.begin(lambda numbers: EpochPlan(0), 0)
    return found


@pytest.mark.parametrize(("memory", "batches", "low", "high"), [("none", 10, 0.3, 0.7), ("gru/v1", 18, 0.9, 1.0)])
def test_only_memory_recalls_a_sign(memory: MemoryName, batches: int, low: float, high: float) -> None:
    session = recall_session(memory)
    for _ in range(batches):
        session.iterate()
    recalled = np.mean([summary.facts["milestones"] for summary in session.summaries[-200:]])
    session.close()
    assert low <= recalled <= high


def test_memory_is_empty_in_the_first_step_of_each_episode() -> None:
    session = recall_session("gru/v1", batch=256)
    build, seen = type(session.learner.builder).__call__, []

    def watched(builder: Any, **kwargs: Any) -> Any:
        seen.append(build(builder, **kwargs)[DEFAULT_MODULE_ID])
        return build(builder, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(session.learner.builder), "__call__", watched)
        session.iterate()
        session.iterate()
    session.close()
    batch = seen[-1]
    first = batch[Columns.OBS][:, 10] == 1  # the sign's step
    assert (batch[MEMORY][first] == 0).all()
    assert (batch[MEMORY][~first].abs().sum(-1) > 0).all(), "memory goes on from batch to batch"
    assert batch[BEGINS][first].all()


def test_a_restored_session_goes_on_with_its_recurrent_policy() -> None:
    first = recall_session("gru/v1", batch=256)
    first.iterate()
    saved = first.save()
    second = recall_session("gru/v1", batch=256, seed=2)
    second.load(saved)
    for name, tensor in first.network.state_dict().items():
        assert torch.equal(tensor, second.network.state_dict()[name]), name
    second.iterate()
    without = recall_session("none", batch=256)
    with pytest.raises(Permanent, match="trained on memory 'gru/v1', this run uses 'none': start a new run"):
        without.load(saved)
    for session in (first, second, without):
        session.close()


def test_an_evaluation_carries_memory_within_its_episodes() -> None:
    class Answering(torch.nn.Module):
        """Remembers the sign of the first step, and answers it."""

        memory_size = 4

        def step(self, observations: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            remembered = memory + observations[:, :4]
            return 100 * torch.nn.functional.pad(remembered, (0, 4)), remembered

    policy: Any = Answering()
    evaluation = Evaluation(lambda count: Recall({"num_envs": count}), seed=0)
    found = evaluation.run(policy, 0, limit=WAIT + 1)
    assert found["milestones_mean"] == 1.0
    evaluation.close()
