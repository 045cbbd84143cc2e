"""Evaluates the policy apart from training: true start only, no curiosity, no shaping, nothing recorded.

One environment plays the policy's best action, the others sample from it: the best action alone can run into a loop
that sampling leaves. Both are reported.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from services.trainer.domain.episodes import EpisodeName
from services.trainer.domain.epoch_metrics import EpisodeSummary, epoch_metrics
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.networks.pixel_observation import as_network_input
from services.trainer.rl.networks.policy_network import PolicyNetwork, first_memory, forgotten

ENVIRONMENTS = 8
MIN_STEPS = 2_000
SHARE_OF_EPOCH = 0.1  # upper bound for the steps of an evaluation, as a share of its epoch's


def step_limit(episode_length: int, epoch_steps: int) -> int:
    """Longest evaluation episode in steps: a whole one, bounded by the share of the epoch that evaluation may cost."""
    return min(episode_length, max(MIN_STEPS, round(epoch_steps * SHARE_OF_EPOCH / ENVIRONMENTS)))


class EvaluationAborted(Exception):
    """The evaluation was ended before all its episodes were played: it has no metrics."""


class Evaluation:
    """Plays evaluation episodes in a vector environment of its own, apart from the training environments."""

    def __init__(self, make: Callable[[int], Any], seed: int) -> None:
        """`make` builds a vector environment of that many environments, set up for evaluation."""
        self._make = make
        self._seed = seed
        self._env: Any = None

    def run(
        self,
        policy: PolicyNetwork,
        epoch: int,
        limit: int,
        report: Callable[[float], None] = lambda share: None,
        aborts: Callable[[], bool] = lambda: False,
    ) -> dict[str, float]:
        """Play one episode of at most `limit` steps in each environment; return the metrics by name.

        `report` receives the share of the steps played so far. Raises EvaluationAborted at the first step at which
        `aborts` returns true.
        """
        if self._env is None:
            self._env = self._make(ENVIRONMENTS)
        self._env.begin_epoch(EpochPlan(epoch))
        generator = torch.Generator().manual_seed(self._seed + epoch)
        observations, _ = self._env.reset(seed=self._seed)
        memory, ended = first_memory(policy, ENVIRONMENTS), np.zeros(ENVIRONMENTS, bool)
        open_ = np.ones(ENVIRONMENTS, bool)
        for step in range(limit):
            if aborts():
                raise EvaluationAborted
            report(step / limit)
            actions, remembered = choose(policy, observations, memory, generator)
            memory = forgotten(remembered, ended)  # the step after an end resets the environment
            observations, _, terminated, truncated, _ = self._env.step(actions)
            ended = terminated | truncated
            open_ &= ~ended
            if not open_.any():
                break
        return metrics(self._env.collect(final=True).summaries)

    def close(self) -> None:
        """Free the emulators."""
        if self._env is not None:
            self._env.close()


@torch.inference_mode()
def choose(
    policy: PolicyNetwork, observations: Any, memory: torch.Tensor, generator: torch.Generator
) -> tuple[Any, torch.Tensor]:
    """Actions (N,), the best one in environment 0 and sampled actions in the others, and the next memory (N, M)."""
    logits, remembered = policy.step(torch.from_numpy(as_network_input(observations)), memory)
    noise = torch.empty_like(logits).exponential_(generator=generator).log_()
    noise[0] = 0.0
    return (logits - noise).argmax(-1).numpy(), remembered


def metrics(summaries: list[EpisodeSummary]) -> dict[str, float]:
    """Metrics of each environment's first episode; `best_action/...` is environment 0's.

    An episode that is still open at the step limit counts as complete: the limit is evaluation's own truncation.
    Without the survivors, one death would be the result of all seven.
    """
    first: dict[int, EpisodeSummary] = {}
    for summary in summaries:
        first.setdefault(EpisodeName.parse(summary.episode).env, replace(summary, complete=True))
    greedy = [summary for env, summary in first.items() if env == 0]
    sampled = [summary for env, summary in first.items() if env != 0]
    found = epoch_metrics(sampled)
    return found | {f"best_action/{name}": value for name, value in epoch_metrics(greedy).items()}
