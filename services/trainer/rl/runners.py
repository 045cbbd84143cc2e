"""Reaches the vector environments inside RLlib's env runners, and restores the epoch's plan in rebuilt ones.

RLlib rebuilds an environment that raised and a runner that died, both from their constructor's arguments. So each
runner keeps the plan for its environments, and the algorithm keeps it for new runners.
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
REBUILDS = "zelda_rebuilds"
MAX_REBUILDS = 10  # rebuilds per runner and epoch; RLlib alone would rebuild a broken game without end
RUNNER_GENERATIONS = "zelda_runner_generations"
RESTARTS = "zelda_restarts"
MAX_RUNNER_RESTARTS = 5  # of one runner and epoch; RLlib alone would restart a broken one without end


class EpochPlanCallback(RLlibCallback):
    """Gives the epoch's plan to environments and runners that RLlib rebuilt."""

    def on_environment_created(self, *, env_runner: Any, env: Any, **kwargs: Any) -> None:
        """In the runner: an environment was built. If the runner has a plan, this is a rebuild."""
        env.runner = env_runner.worker_index or 0  # RLlib does not pass the index to vector environments
        plan = getattr(env_runner, PLAN, None)
        if plan is not None:
            rebuilds = getattr(env_runner, REBUILDS, 0) + 1
            setattr(env_runner, REBUILDS, rebuilds)
            if rebuilds > MAX_REBUILDS:
                raise Fatal(
                    f"the environments of runner {env.runner} failed {rebuilds} times in one epoch: see the log"
                )
            env.begin_epoch(plan.after_restart(rebuilds))

    def on_env_runners_recreated(
        self,
        *,
        algorithm: Any,
        env_runner_group: Any,
        env_runner_indices: list[int],
        is_evaluation: bool,
        **kwargs: Any,
    ) -> None:
        """In the driver: dead runners were restarted."""
        plan = getattr(algorithm, PLAN, None)
        if plan is None or is_evaluation:
            return
        _limit(getattr(algorithm, RESTARTS), env_runner_indices)
        generation = getattr(algorithm, RUNNER_GENERATIONS, 0) + 1
        setattr(algorithm, RUNNER_GENERATIONS, generation)
        fresh = plan.after_restart(generation * GENERATIONS_PER_RUNNER)
        env_runner_group.foreach_env_runner(
            lambda runner: _begin(runner, fresh), local_env_runner=False, remote_worker_ids=env_runner_indices
        )


def begin_epoch(algorithm: Any, plan: EpochPlan) -> None:
    """Send the plan to every environment. The next sample starts with a reset of all of them."""
    setattr(algorithm, PLAN, plan)
    setattr(algorithm, RESTARTS, Counter())
    _on_all_runners(algorithm, lambda runner: _begin(runner, plan))


def collect(algorithm: Any, *, final: bool, steps: int) -> list[RolloutResult]:
    """Collect from all living runners. A runner that is restarting has nothing to return.

    `steps` of the epoch are done. The kept plans are updated with them and with the number of recorded segments:
    with the initial plan, a rebuilt environment would have the whole budget again.
    """
    plan = getattr(algorithm, PLAN)
    recorded = plan.recorded
    found = _on_all_runners(algorithm, lambda runner: _collect(runner, final, steps, recorded))
    results = [result for result in found if result is not None]
    recorded += sum(len(result.segments) for result in results)
    setattr(algorithm, PLAN, replace(plan, steps=steps, recorded=recorded))
    return results


def _limit(restarts: Counter[int], again: list[int]) -> None:
    """Count the restarts of each runner in this epoch; raise Fatal after too many."""
    restarts.update(again)
    runner, times = restarts.most_common(1)[0]
    if times > MAX_RUNNER_RESTARTS:
        raise Fatal(
            f"env runner {runner} was restarted {times} times in one epoch: see worker-*.err in Ray's "
            "session_latest/logs"
        )


def _on_all_runners(algorithm: Any, call: Any) -> list[Any]:
    # With remote runners the local one has no environment.
    group = algorithm.env_runner_group
    return list(group.foreach_env_runner(call, local_env_runner=group.num_remote_workers() == 0))


def _begin(runner: Any, plan: EpochPlan) -> None:
    setattr(runner, PLAN, plan)
    setattr(runner, REBUILDS, 0)
    _seed_actions(runner, plan)
    runner.env.unwrapped.begin_epoch(plan)
    runner._needs_initial_reset = True


def _seed_actions(runner: Any, plan: EpochPlan) -> None:
    """Reseed action sampling, so that a restarted epoch repeats its play and a restarted runner does not.

    No checkpoint holds the generator of a remote runner. The local runner shares the driver's, which checkpoints hold.
    """
    if runner.worker_index:
        parts = [runner.config.seed, plan.epoch, plan.steps, runner.worker_index, plan.generation]
        torch.manual_seed(int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0]))


def _collect(runner: Any, final: bool, steps: int, recorded: int) -> RolloutResult:
    plan = getattr(runner, PLAN, None)
    if plan is not None:  # a new runner receives its plan with the next sample
        setattr(runner, PLAN, replace(plan, steps=steps, recorded=recorded))
    found: RolloutResult = runner.env.unwrapped.collect(final=final)
    return found
