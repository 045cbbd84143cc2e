"""A recurrent policy on its own: the learner computes what the player computed, in whole pieces."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from ray.rllib.core.columns import Columns

from services.trainer.rl.batch import minibatch_pieces
from services.trainer.rl.env_runner import BatchedEnvRunner, Rollout
from services.trainer.rl.module import build_policy
from services.trainer.rl.networks.policy_network import (
    BEGINS,
    MEMORY,
    MEMORY_SIZE,
    PIECE_STEPS,
    first_memory,
    forgotten,
    piece_begins,
    rows_of_pieces,
)
from shared.contracts.run import PlannerConfig, RunConfig


@pytest.fixture
def policy() -> Any:
    torch.manual_seed(3)
    return build_policy((12,), (32, 16), 8, memory=True)


def played(policy: Any, steps: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Observations (T, 12), logits (T, 8) and the memory before each step (T, M) of one environment."""
    observations, memory = torch.randn(steps, 12), first_memory(policy, 1)
    logits, memories = [], []
    with torch.no_grad():
        for seen in observations:
            memories.append(memory)
            found, memory = policy.step(seen[None], memory)
            logits.append(found)
    return observations, torch.cat(logits), torch.cat(memories)


def test_the_learner_computes_what_the_player_computed(policy: Any) -> None:
    steps = 2 * PIECE_STEPS + 5
    observations, logits, memories = played(policy, steps)
    rows = {Columns.OBS: observations, MEMORY: memories, BEGINS: torch.from_numpy(piece_begins(steps))}
    assert torch.allclose(policy.rows(rows), logits, atol=1e-5)


def test_pieces_of_a_minibatch_may_come_in_any_order(policy: Any) -> None:
    steps = 2 * PIECE_STEPS + 5
    observations, logits, memories = played(policy, steps)
    begins = piece_begins(steps)
    rows = rows_of_pieces(begins, np.array([2, 0]))
    assert len(rows) == 5 + PIECE_STEPS
    chosen = {Columns.OBS: observations[rows], MEMORY: memories[rows], BEGINS: torch.from_numpy(begins)[rows]}
    assert torch.allclose(policy.rows(chosen), logits[rows], atol=1e-5)


def test_memory_is_forgotten_where_an_episode_has_ended() -> None:
    memory = torch.ones(3, MEMORY_SIZE)
    assert forgotten(memory, np.array([False, True, False]))[:, 0].tolist() == [1, 0, 1]


class InnerLoop(BatchedEnvRunner):
    """The inner loop alone, on a module that remembers how many steps it has seen."""

    def __init__(self, ends: list[np.ndarray]) -> None:
        self.module: Any = SimpleNamespace(
            pi=SimpleNamespace(memory_size=1), _forward_exploration=lambda batch: self.outputs(batch[MEMORY])
        )
        self.env: Any = SimpleNamespace(unwrapped=None)
        self._ends = ends
        self._rollout = Rollout(np.zeros((2, 1), np.float32), np.zeros(2, np.bool_), ["a", "b"])
        self._memory = torch.zeros(2, 1)

    @staticmethod
    def outputs(memory: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            Columns.ACTIONS: torch.zeros(2, dtype=torch.long),
            Columns.ACTION_LOGP: torch.zeros(2),
            MEMORY: memory + 1,
        }

    def _try_env_step(self, actions: Any) -> Any:
        return np.zeros((2, 1), np.float32), np.zeros(2), self._ends.pop(0), np.zeros(2, np.bool_), {}


def test_a_runner_empties_the_memory_after_the_step_that_resets() -> None:
    """The last step of an episode has memory, and so has the one after its end, which shows the next beginning."""
    never = np.zeros(2, np.bool_)
    runner = InnerLoop([never, np.array([True, False]), never, never])
    for _ in range(4):
        assert runner._step()
    ended, *open_ = runner._rollout.chunks()
    assert ended.get_extra_model_outputs(MEMORY)[:, 0].tolist() == [0, 1]
    assert [chunk.get_extra_model_outputs(MEMORY)[:, 0].tolist() for chunk in open_] == [[0], [0, 1, 2, 3]]
    assert runner._memory[:, 0].tolist() == [1, 4]


def test_gradients_flow_back_through_a_piece(policy: Any) -> None:
    observations, _, memories = played(policy, 10)
    observations.requires_grad_(True)
    rows = {Columns.OBS: observations, MEMORY: memories, BEGINS: torch.from_numpy(piece_begins(10))}
    policy.rows(rows)[-1, 0].backward()
    assert observations.grad is not None
    assert observations.grad[0].abs().sum() > 0, "the first observation changes the last logits"


def test_minibatches_use_each_row_once_a_pass_in_whole_pieces() -> None:
    begins = np.concatenate([piece_begins(steps) for steps in (70, 3, 40)])
    passes = list(minibatch_pieces(begins, size=64, epochs=2, shuffle=True))
    rows = np.concatenate(passes)
    assert np.bincount(rows, minlength=len(begins)).min() >= 2
    for chosen in passes:
        breaks = np.flatnonzero(np.diff(chosen) != 1) + 1
        assert begins[chosen[0]]
        assert begins[chosen[breaks]].all()


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ({"planner": PlannerConfig(mode="rules")}, "memory needs planner.mode none and options none"),
        ({"options": "options/v1"}, "memory needs planner.mode none and options none"),
        ({"learners": 2}, "memory needs learners 1"),
        ({"imitation": {"mode": "sil"}}, "memory needs imitation.mode none"),
    ],
)
def test_memory_is_refused_beside_what_would_break_it(others: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        RunConfig(memory="gru/v1", **others)


def test_memory_needs_no_place_without_it() -> None:
    feed_forward = build_policy((12,), (32, 16), 8, memory=False)
    assert first_memory(feed_forward, 3).shape == (3, 0)
    assert first_memory(build_policy((12,), (32, 16), 8, memory=True), 3).shape == (3, MEMORY_SIZE)
    assert next(iter(feed_forward.state_dict())) == "0.weight", "checkpoints of earlier versions fit"
