"""Plays many episodes of one policy from the true start, on all cores, and counts how they end."""

import multiprocessing
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from statistics import fmean, median
from typing import Any

from cli.policy.play import PlayedEpisode, PlayOptions
from cli.policy.policy_file import Policy
from cli.stack.signals import children_ignore_interrupts, die_with_parent
from services.trainer.env.game_session import EpisodeReport
from shared.contracts.run import RunConfig
from shared.process.cores import usable_cores
from studies.stats import share_estimate


def played(
    policy: Policy, config: RunConfig, options: PlayOptions, episodes: int
) -> Generator[EpisodeReport, None, None]:
    """The report of each episode, in the order of their seeds: the first one has that of the options.

    Its processes end with the iteration, also when it is left early: close it.
    """
    seeds = range(options.seed, options.seed + episodes)
    context = multiprocessing.get_context("spawn")  # an emulator does not survive a fork
    others = multiprocessing.active_children()
    jobs = min(usable_cores(), episodes)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=die_with_parent) as pool:
        with children_ignore_interrupts():  # the emulator swallows KeyboardInterrupt, and its episode goes on
            reports = pool.map(partial(_one, policy, config, options), seeds)
        try:
            yield from reports
        except BaseException:
            for process in set(multiprocessing.active_children()).difference(others):
                process.terminate()
            raise


def _one(policy: Policy, config: RunConfig, options: PlayOptions, seed: int) -> EpisodeReport:
    return PlayedEpisode(policy, config, replace(options, seed=seed)).finish()


def summary(reports: Sequence[EpisodeReport]) -> dict[str, Any]:
    """How the episodes ended. `finished_low` and `_high` are the 95 % interval of the share (Wilson 1927)."""
    finished = [report for report in reports if report.finished]
    interval = share_estimate(len(finished), len(reports))
    return {
        "episodes": len(reports),
        "finished": len(finished),
        "finished_low": round(interval.low, 4),
        "finished_high": round(interval.high, 4),
        "deaths": sum(report.deaths for report in reports),
        "milestones_mean": round(fmean(report.milestones for report in reports), 2),
        "milestones_most": max(report.milestones for report in reports),
        "milestones_total": reports[0].milestones_total,
        "steps_to_finish": median(report.steps for report in finished) if finished else None,
    }
