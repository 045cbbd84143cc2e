"""Env runners as Ray actors: one is killed in mid-epoch, and the epoch goes on without a name used twice."""

import os
import signal

import pytest

from services.trainer.domain.figures import EpisodeSummary
from services.trainer.rl.plan import GENERATION, GENERATIONS_PER_RUNNER, EpochPlan
from services.trainer.rl.session import Session, SessionSpec
from tests.unit.trainer.corridor import corridor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on every start
]


def test_a_killed_runner_is_replaced_and_told_the_plan_of_the_epoch() -> None:
    session = Session(SessionSpec(corridor(), 2, 4, 512, curiosity=True, seed=1))
    session.begin(lambda numbers: EpochPlan(3), 3)
    session.iterate()
    pids = session.algorithm.env_runner_group.foreach_env_runner(lambda runner: os.getpid(), local_env_runner=False)
    os.kill(pids[0], signal.SIGKILL)
    for _ in range(20):
        session.iterate()
        if any(number_of(summary) >= GENERATION for summary in session.summaries):
            break
    names = [summary.episode for summary in session.summaries]
    assert len(names) == len(set(names)), "an episode's name was used twice"
    assert all(name.startswith("e0003-") for name in names), "the new runner does not know the epoch"
    assert {name.split("-")[1] for name in names} == {"r01", "r02"}
    reborn = [number for number in map(number_of, session.summaries) if number >= GENERATION]
    assert reborn, "the new runner has finished no episode"
    assert min(reborn) >= GENERATION * GENERATIONS_PER_RUNNER
    session.close()


def number_of(summary: EpisodeSummary) -> int:
    return int(summary.episode.split("-")[3])


def test_while_no_runner_is_there_no_step_is_counted() -> None:
    session = Session(SessionSpec(corridor(), 1, 4, 512, curiosity=False, seed=1))
    session.begin(lambda numbers: EpochPlan(0), 0)
    session.iterate()
    made, figures = session.steps, session.figures
    pids = session.algorithm.env_runner_group.foreach_env_runner(lambda runner: os.getpid(), local_env_runner=False)
    os.kill(pids[0], signal.SIGKILL)
    session.iterate()
    assert (session.steps, session.lifetime_steps, session.steps_per_s) == (made, made, 0.0)
    assert session.figures == figures  # still those of the last batch
    for _ in range(20):
        session.iterate()
        if session.steps > made:
            break
    assert session.steps > made
    session.close()
