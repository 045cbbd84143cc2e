"""Env runners as Ray actors: after one is killed the epoch continues; after all failed for good it ends."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
import ray
import torch

from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.driver.ray_cluster import require_room
from services.trainer.driver.session import TrainingSession
from services.trainer.rl.epoch_plan import GENERATION, GENERATIONS_PER_RUNNER, EpochPlan
from shared.errors import Fatal
from shared.game.errors import EmulatorFault
from tests.unit.trainer.corridor_env import Corridor, corridor_session

PATIENCE_S = 120  # a new runner starts slowly on a busy machine, while the other one plays on

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on every start
]


@pytest.fixture(scope="module")
def warm() -> Iterator[TrainingSession]:
    """A session with two runners, which start for seconds. The last test that uses it kills one."""
    session = corridor_session(2, 4, 512)
    yield session
    session.close()


def test_a_restarted_epoch_repeats_its_play_and_another_epoch_does_not(warm: TrainingSession) -> None:
    fresh = corridor_session(2, 4, 512)
    warm.begin(lambda numbers: EpochPlan(0), 0)
    first = random_states(warm)
    warm.iterate()
    warm.collect(final=True)
    fresh.load(warm.save())
    played = []
    for session in (warm, fresh):
        session.begin(lambda numbers: EpochPlan(1), 1)
        second = random_states(session)
        for _ in range(4):
            session.iterate()
        played.append(sorted((summary.episode, summary.facts["milestones"]) for summary in session.summaries))
    assert played[0] == played[1]
    assert len({reached for _, reached in played[0]}) > 2, "all episodes are alike: nothing is shown"
    fresh.begin(lambda numbers: EpochPlan(1, steps=512), 1)
    assert len(first | second | random_states(fresh)) == 6
    fresh.close()


def test_a_killed_runner_is_replaced_and_receives_the_epochs_plan(warm: TrainingSession) -> None:
    warm.begin(lambda numbers: EpochPlan(3), 3)
    warm.iterate()
    before = random_states(warm)
    kill_a_runner(warm)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        warm.iterate()
        if any(number_of(summary) >= GENERATION for summary in warm.summaries):
            break
    names = [summary.episode for summary in warm.summaries]
    assert len(names) == len(set(names)), "an episode's name was used twice"
    assert all(name.startswith("e0003-") for name in names), "the new runner does not know the epoch"
    assert {name.split("-")[1] for name in names} == {"r01", "r02"}
    reborn = [number for number in map(number_of, warm.summaries) if number >= GENERATION]
    assert reborn, "the new runner has finished no episode"
    assert min(reborn) >= GENERATION * GENERATIONS_PER_RUNNER
    assert len(random_states(warm) | before) == 3, "the new runner samples with the seed of the old one"


def test_without_runners_no_step_counts_and_the_driver_ends_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    session = corridor_session(1, 4, 512, curiosity=False)
    session.begin(lambda numbers: EpochPlan(0), 0)
    session.iterate()
    made, figures = session.steps, session.figures
    kill_a_runner(session)
    session.iterate()
    assert (session.steps, session.lifetime_steps, session.steps_per_s) == (made, made, 0.0)
    assert session.figures == figures  # still those of the last batch
    deadline = time.monotonic() + PATIENCE_S
    while session.steps == made and time.monotonic() < deadline:
        session.iterate()
    assert session.steps > made
    monkeypatch.setattr("services.trainer.driver.session.STANDSTILL_S", 0.0)
    kill_a_runner(session)
    with pytest.raises(Fatal, match="the env runners returned no batch"):
        session.iterate()
    session.close()


def test_a_cluster_gives_the_room_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.trainer.driver.ray_cluster.NOTICE_S", 1)
    cpus = int(ray.cluster_resources()["CPU"])
    for _ in range(cpus + 1):  # each gives its CPU back; other sessions may have the rest
        require_room(1, joined=True, patience_s=PATIENCE_S)
    with pytest.raises(Fatal, match=f"the Ray cluster of {cpus} CPUs had no room for them for 1 s"):
        require_room(cpus + 1, joined=True, patience_s=1.0)


class Slow(Corridor):
    """A game whose share of a batch takes some seconds."""

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        time.sleep(0.05)
        return super().step(actions)


def test_a_batch_that_takes_too_long_ends_the_epoch_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.trainer.rl.algorithm.SAMPLE_TIMEOUT_S", 1.0)
    monkeypatch.setattr("services.trainer.driver.session.STANDSTILL_S", 0.0)
    session = corridor_session(1, 2, 128, curiosity=False, env=Slow)
    session.begin(lambda numbers: EpochPlan(0), 0)
    with pytest.raises(Fatal, match="a batch takes more than 1 s: lower batch_size"):
        session.iterate()
    session.close()


class Failing(Corridor):
    """A game that fails wherever it is reset."""

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        raise EmulatorFault("no picture")


def test_a_game_that_always_fails_in_remote_runners_ends_the_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.trainer.rl.runners.MAX_RUNNER_RESTARTS", 1)
    monkeypatch.setattr("services.trainer.rl.algorithm.RESTART_PAUSE_S", 0.1)
    session = corridor_session(1, 2, 128, curiosity=False, env=Failing)
    session.begin(lambda numbers: EpochPlan(0), 0)
    with pytest.raises(Fatal, match="env runner 1 was restarted 2 times in one epoch"):
        iterate(session, 100)
    assert session.steps == 0
    session.close()


def iterate(session: TrainingSession, times: int) -> None:
    for _ in range(times):
        session.iterate()


def kill_a_runner(session: TrainingSession) -> None:
    group = session.algorithm.env_runner_group
    pids = group.foreach_env_runner(lambda runner: os.getpid(), local_env_runner=False)
    os.kill(pids[0], signal.SIGKILL)


def random_states(session: TrainingSession) -> set[int]:
    """What the generators of the runners were seeded with."""
    group = session.algorithm.env_runner_group
    return set(group.foreach_env_runner(lambda runner: torch.initial_seed(), local_env_runner=False))


def number_of(summary: EpisodeSummary) -> int:
    return int(summary.episode.split("-")[3])
