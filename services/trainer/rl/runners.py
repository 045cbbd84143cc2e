"""Reaching the vector environments inside RLlib's runners, and telling rebuilt ones again what they are to do.

RLlib rebuilds an environment that raised and a runner that died, both with the values of their constructor. The plan
of the epoch is therefore kept on the runner, and by the driver for runners that are born anew.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from ray.rllib.callbacks.callbacks import RLlibCallback

from services.trainer.rl.epoch_plan import GENERATIONS_PER_RUNNER, EpochPlan, RolloutResult
from shared.errors import Fatal

PLAN = "zelda_plan"
LIVES = "zelda_lives"
MOST_LIVES = 10  # rebuilt environments per runner and epoch; RLlib alone would rebuild a broken game for ever
LIVES_OF_RUNNERS = "zelda_lives_of_runners"
RESTARTS = "zelda_restarts"
MOST_RUNNER_RESTARTS = 5  # of one runner and epoch; RLlib alone would start one in which nothing works again for ever


class EpochPlanCallback(RLlibCallback):
    """Gives the epoch's plan to environments and runners that RLlib made anew."""

    def on_environment_created(self, *, env_runner: Any, env: Any, **kwargs: Any) -> None:
        """In the runner: an environment was built; if the runner has a plan, it is a rebuilt one."""
        env.runner = env_runner.worker_index or 0  # RLlib does not tell vector environments which runner they are in
        plan = getattr(env_runner, PLAN, None)
        if plan is not None:
            lives = getattr(env_runner, LIVES, 0) + 1
            setattr(env_runner, LIVES, lives)
            if lives > MOST_LIVES:
                raise Fatal(f"the environments of runner {env.runner} failed {lives} times in one epoch: see the log")
            env.begin_epoch(plan.next_life(lives))

    def on_env_runners_recreated(
        self,
        *,
        algorithm: Any,
        env_runner_group: Any,
        env_runner_indices: list[int],
        is_evaluation: bool,
        **kwargs: Any,
    ) -> None:
        """In the driver: runners died and were started again."""
        plan = getattr(algorithm, PLAN, None)
        if plan is None or is_evaluation:
            return
        _limit(getattr(algorithm, RESTARTS), env_runner_indices)
        lives = getattr(algorithm, LIVES_OF_RUNNERS, 0) + 1
        setattr(algorithm, LIVES_OF_RUNNERS, lives)
        fresh = plan.next_life(lives * GENERATIONS_PER_RUNNER)
        env_runner_group.foreach_env_runner(
            lambda runner: _begin(runner, fresh), local_env_runner=False, remote_worker_ids=env_runner_indices
        )


def begin_epoch(algorithm: Any, plan: EpochPlan) -> None:
    """Hand the plan to every environment. The next sample starts with a reset of all of them."""
    setattr(algorithm, PLAN, plan)
    setattr(algorithm, RESTARTS, Counter())
    _everywhere(algorithm, lambda runner: _begin(runner, plan))


def collect(algorithm: Any, *, final: bool, steps: int) -> list[RolloutResult]:
    """What all living runners brought in. A runner that is being restarted has nothing to bring.

    `steps` of the epoch are done. Who is rebuilt from now on is told so, and what was recorded before this collect:
    with the plan of the epoch's beginning, the whole budget would be his again.
    """
    plan = getattr(algorithm, PLAN)
    recorded = plan.recorded
    found = _everywhere(algorithm, lambda runner: _collect(runner, final, steps, recorded))
    results = [one for one in found if one is not None]
    recorded += sum(len(one.segments) for one in results)
    setattr(algorithm, PLAN, replace(plan, steps=steps, recorded=recorded))
    return results


def _limit(restarts: Counter[int], again: list[int]) -> None:
    """Count the restarts of each runner in this epoch; Fatal where there were too many."""
    restarts.update(again)
    runner, times = restarts.most_common(1)[0]
    if times > MOST_RUNNER_RESTARTS:
        raise Fatal(
            f"env runner {runner} was started again {times} times in one epoch: worker-*.err in Ray's "
            "session_latest/logs say why"
        )


def _everywhere(algorithm: Any, call: Any) -> list[Any]:
    # With remote runners the local one has no environment.
    group = algorithm.env_runner_group
    return list(group.foreach_env_runner(call, local_env_runner=group.num_remote_workers() == 0))


def _begin(runner: Any, plan: EpochPlan) -> None:
    setattr(runner, PLAN, plan)
    setattr(runner, LIVES, 0)
    _cast(runner, plan)
    runner.env.unwrapped.begin_epoch(plan)
    runner._needs_initial_reset = True
    runner._ongoing_episodes_for_metrics.clear()


def _cast(runner: Any, plan: EpochPlan) -> None:
    """New dice for what the policy does in this epoch: no checkpoint has those of a runner in a process of its own, and
    an epoch that begins again is to be the same play. A runner that is started again plays something else.

    The local runner shares its dice with the learner, and a checkpoint has them.
    """
    if runner.worker_index:
        parts = [runner.config.seed, plan.epoch, plan.steps, runner.worker_index, plan.generation]
        torch.manual_seed(int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0]))


def _collect(runner: Any, final: bool, steps: int, recorded: int) -> RolloutResult:
    plan = getattr(runner, PLAN, None)
    if plan is not None:  # a runner born a moment ago is told it with its next sample
        setattr(runner, PLAN, replace(plan, steps=steps, recorded=recorded))
    # RLlib keeps all chunks of open episodes for metrics that nobody here reads: of pictures, a gigabyte per episode.
    runner._ongoing_episodes_for_metrics.clear()
    found: RolloutResult = runner.env.unwrapped.collect(final=final)
    return found
