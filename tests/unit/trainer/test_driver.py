"""The driver in a corridor: it executes orders once, a stop repeats nothing, a crash repeats little."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.trainer.documents import Heartbeat, latest_checkpoint_key
from services.trainer.domain.epoch_metrics import epoch_metrics
from services.trainer.driver import epoch_runner
from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.driver import Driver, may_run
from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.evaluation import Evaluation
from services.trainer.driver.heartbeat import ExitReason
from services.trainer.driver.session import TrainingSession
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.settings import DriverGroup
from shared.contracts.driver import Assistance, DriverStopped
from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.object_store import local_store
from shared.store.port import Store
from tests.unit.trainer.corridor_env import Corridor, corridor_session
from tests.unit.trainer.run_fixtures import RUN, beat, enter, order, run_in, segment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on every start
]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return local_store(tmp_path)


def make(run: RunId, config: RunConfig) -> tuple[TrainingSession, Evaluation]:
    session = corridor_session(0, config.envs_per_runner, config.batch_size)
    return session, Evaluation(lambda envs: Corridor({"num_envs": envs}), 1)


def driver(store: Store, name: str, idle_s: float = 1.0) -> Driver:
    return Driver(DriverStore(BlockingStore(store), RUN, name), DriverGroup(idle_s=idle_s), make)


def finished(store: Store, epoch: int) -> EpochFinishedRecord:
    return EpochFinishedRecord.from_bytes(asyncio.run(store.get(keys.epoch_finished(RUN, epoch))))


async def prepare(store: Store, epochs_ordered: int = 1) -> RunRecord:
    record = await run_in(store)
    for epoch in range(epochs_ordered):
        await order(store, epoch)
    return record


def test_one_warm_driver_executes_two_orders(store: Store) -> None:
    asyncio.run(prepare(store, 2))
    asyncio.run(segment(store, 1))  # somebody recorded this before us
    driver(store, "d1").run(None)
    first, second = finished(store, 0), finished(store, 1)
    assert first.steps >= 2048
    assert second.metrics["lifetime_steps"] == first.steps + second.steps
    assert [ref.segment for ref in first.segments] == ["e0000-r00-v00-0001-s000"]
    assert first.evaluation is not None
    assert "best_action/milestones_mean" in first.evaluation
    assert {"return_mean", "learner/entropy", "steps_per_s"} <= set(first.metrics)
    asyncio.run(store.get(first.checkpoint_key, first.checkpoint_digest))
    last = Heartbeat.from_bytes(asyncio.run(store.get(keys.driver_heartbeat(RUN))))
    assert (last.driver, last.state) == ("d1", "ended")


def test_who_helped_is_reported_while_an_epoch_plays_and_in_its_record(store: Store) -> None:
    record = asyncio.run(prepare(store, 2))
    alone = driver(store, "d1")
    session, evaluation = make(RUN, record.config)
    alone._make = lambda run, config: (session, evaluation)

    def assistance(*, final: bool) -> Assistance:
        return Assistance(suggestions={"taken": 100 * session.epoch + session.iteration, "stale": int(final)})

    session.assistance = assistance  # type: ignore[method-assign]
    reported: list[tuple[int, Assistance | None]] = []
    iterate = session.iterate

    def reporting() -> None:
        heartbeat = alone.heartbeat._heartbeat()
        reported.append((heartbeat.epoch, heartbeat.assistance))
        iterate()

    session.iterate = reporting  # type: ignore[method-assign]
    alone.run(None)
    begun = [place for place, (epoch, _) in enumerate(reported) if epoch == 1]
    assert reported[begun[0]] == (1, None), "nothing of the epoch before"
    assert reported[begun[1]] == (1, Assistance(suggestions={"taken": 101, "stale": 0}))
    found = finished(store, 1).assistance
    assert found is not None
    assert found.suggestions["stale"] == 1, "the record waits for the newest calls"


def test_a_stop_leaves_a_checkpoint_and_a_resumed_run_goes_on_from_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = asyncio.run(prepare(store))
    monkeypatch.setattr("services.trainer.driver.heartbeat.HEARTBEAT_S", 0.05)
    stopper = driver(store, "d1", idle_s=60)
    running = leaves_after_one_iteration(stopper, record.config, "stop")
    stopper.run(None)
    word = DriverStopped.from_bytes(asyncio.run(store.get(keys.driver_stopped(RUN, 1))))
    assert 0 < word.steps < 2048
    assert word.checkpoint_key is not None
    before = len(running.summaries)
    resumed, tester = make(RUN, record.config)
    second = driver(store, "d2")
    second._make = lambda run, config: (resumed, tester)
    plans = plans_of(resumed)
    second.run(None)
    account = finished(store, 0)
    assert account.attempt == 2
    assert account.episodes >= 2 * before > 0  # those of both drivers, each of which made half of the steps
    assert account.steps < word.steps + 2048  # the steps before the stop were not made again
    assert [plan.steps for plan in plans] == [word.steps]  # what is left of the budget is for the steps after it


def test_a_resumed_driver_tells_how_far_the_epoch_is_before_it_goes_on(store: Store) -> None:
    record = asyncio.run(prepare(store))
    stopper = driver(store, "d1", idle_s=60)
    done = leaves_after_one_iteration(stopper, record.config, "signal")
    stopper.run(None)
    second = driver(store, "d2", idle_s=60)
    resumed, evaluation = make(RUN, record.config)
    second._make = lambda run, config: (resumed, evaluation)
    reported: list[int] = []

    def iterate() -> None:  # which may take minutes
        reported.append(second.heartbeat._heartbeat().steps)
        second.heartbeat.request_exit("orphaned")

    resumed.iterate = iterate  # type: ignore[method-assign]
    second.run(None)
    assert reported == [done.steps]
    assert done.steps > 0


def test_an_orphaned_driver_leaves_the_epoch_as_if_killed(store: Store) -> None:
    record = asyncio.run(prepare(store))
    alone = driver(store, "d1", idle_s=60)
    session = leaves_after_one_iteration(alone, record.config, "orphaned")
    alone.run(None)
    assert 0 < session.steps < 2048
    assert not asyncio.run(store.exists(latest_checkpoint_key(RUN, 0)))
    assert not asyncio.run(store.exists(keys.epoch_finished(RUN, 0)))
    driver(store, "d2").run(None)
    assert finished(store, 0).attempt == 1  # it began the epoch, and went on with nothing


def test_the_driver_of_a_deleted_run_writes_no_checkpoint_and_no_record(store: Store) -> None:
    record = asyncio.run(prepare(store))
    alone = driver(store, "d1", idle_s=60)
    session, evaluation = make(RUN, record.config)
    real = session.iterate

    def iterate() -> None:
        real()
        if session.steps >= record.config.epoch_steps:
            for entry in asyncio.run(store.list(keys.run_prefix(RUN))):
                asyncio.run(store.delete(entry.key))
            alone.heartbeat._beat()

    session.iterate = iterate  # type: ignore[method-assign]
    alone._make = lambda run, config: (session, evaluation)
    alone.run(None)
    assert asyncio.run(store.list(keys.run_prefix(RUN))) == []


def leaves_after_one_iteration(driver: Driver, config: RunConfig, reason: ExitReason) -> TrainingSession:
    """The session of a driver that gets this reason to leave in mid-epoch."""
    session, evaluation = make(RUN, config)
    real = session.iterate

    def iterate() -> None:
        real()
        driver.heartbeat.request_exit(reason)

    session.iterate = iterate  # type: ignore[method-assign]
    driver._make = lambda run, config: (session, evaluation)
    return session


def plans_of(session: TrainingSession) -> list[EpochPlan]:
    """The plans with which the session begins epochs from now on."""
    plans: list[EpochPlan] = []
    real = session.begin

    def begin(plan: Callable[[dict[str, int]], EpochPlan], epoch: int) -> None:
        def noted(numbers: dict[str, int]) -> EpochPlan:
            plans.append(plan(numbers))
            return plans[-1]

        real(noted, epoch)

    session.begin = begin  # type: ignore[method-assign]
    return plans


def test_a_driver_ends_when_a_person_stops_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    record = asyncio.run(prepare(store, 0))
    monkeypatch.setattr("services.trainer.driver.heartbeat.HEARTBEAT_S", 0.05)
    idle = driver(store, "d1", idle_s=60)
    thread = threading.Thread(target=idle.run, args=(None,))
    thread.start()
    asyncio.run(enter(store, record, "stopping"))
    thread.join(10)
    assert not thread.is_alive()
    assert idle.heartbeat.exit_reason == "stop"


def test_after_a_crash_at_most_one_checkpoint_interval_is_repeated(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(prepare(store))
    monkeypatch.setattr(epoch_runner, "CHECKPOINT_S", 0.0)  # a checkpoint after every iteration

    class Crash(RuntimeError):
        pass

    crashing = driver(store, "d1")
    session, evaluation = make(RUN, asyncio.run(RunRecords(store).latest(RUN)).config)
    real, calls = session.iterate, [0]

    def iterate() -> None:
        calls[0] += 1
        if calls[0] == 2:
            raise Crash
        real()

    session.iterate = iterate  # type: ignore[method-assign]
    crashing._make = lambda run, config: (session, evaluation)
    with pytest.raises(Crash):
        crashing.run(None)
    assert asyncio.run(store.exists(latest_checkpoint_key(RUN, 0)))
    assert not asyncio.run(store.exists(keys.epoch_finished(RUN, 0)))
    driver(store, "d2").run(None)
    assert finished(store, 0).steps < 1024 + 2048
    stored = asyncio.run(store.list(keys.checkpoint_prefix(RUN, 0)))
    assert len([entry for entry in stored if entry.key.endswith(".zip")]) == 1, "the resumed one is replaced as well"


def test_a_stop_ends_the_evaluation_and_the_next_driver_repeats_it(store: Store) -> None:
    record = asyncio.run(prepare(store))
    session, _ = make(RUN, record.config)
    stopped, steps = driver(store, "d1"), [0]

    class StopsAtOnce(Corridor):
        def step(self, actions: Any) -> Any:
            steps[0] += 1
            stopped.heartbeat.request_exit("stop")
            return super().step(actions)

    stopped._make = lambda run, config: (session, Evaluation(lambda envs: StopsAtOnce({"num_envs": envs}), 1))
    stopped.run(None)
    assert steps == [1]
    assert not asyncio.run(store.exists(keys.epoch_finished(RUN, 0)))
    confirmed = DriverStopped.from_bytes(asyncio.run(store.get(keys.driver_stopped(RUN, 1))))
    assert confirmed.steps == session.steps >= record.config.epoch_steps
    driver(store, "d2").run(None)
    account = finished(store, 0)
    assert account.steps == session.steps, "no training is repeated"
    assert account.evaluation is not None


def test_a_driver_killed_while_it_evaluates_loses_nothing_of_the_account(store: Store) -> None:
    record = asyncio.run(prepare(store))
    session, _ = make(RUN, record.config)

    class Killed(RuntimeError):
        pass

    class NoEvaluation(Evaluation):
        def run(self, *arguments: Any) -> dict[str, float]:
            raise Killed

    killed = driver(store, "d1")
    killed._make = lambda run, config: (session, NoEvaluation(lambda envs: None, 1))
    with pytest.raises(Killed):
        killed.run(None)
    driver(store, "d2").run(None)
    account = finished(store, 0)
    assert account.episodes == len(session.summaries) > 0
    assert account.metrics["milestones_mean"] == epoch_metrics(session.summaries)["milestones_mean"]
    assert account.metrics["learner/entropy"] == session.figures["entropy"]
    assert account.evaluation is not None


def test_a_stored_figure_that_is_no_number_does_not_block_the_run(store: Store) -> None:
    record = asyncio.run(prepare(store))
    stopped = driver(store, "d1")
    session, evaluation = make(RUN, record.config)
    real = session.iterate

    def iterate() -> None:
        real()
        if session.steps >= record.config.epoch_steps:
            session.figures["policy_loss"] = float("nan")  # as drivers of before 2026-11-29 kept it
            stopped.heartbeat.request_exit("stop")

    session.iterate = iterate  # type: ignore[method-assign]
    stopped._make = lambda run, config: (session, evaluation)
    stopped.run(None)
    assert not asyncio.run(store.exists(keys.epoch_finished(RUN, 0)))
    driver(store, "d2").run(None)
    account = finished(store, 0)
    assert account.steps == session.steps, "no training is repeated"
    assert "learner/policy_loss" not in account.metrics
    assert "learner/entropy" in account.metrics


def test_a_driver_does_not_wait_for_one_that_is_known_to_be_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    host = socket.gethostname()
    assert not may_run(beat("d0", host=host, pid=process.pid))
    assert may_run(beat("d0", host=host, pid=os.getpid()))
    assert may_run(beat("d0", host="elsewhere", pid=process.pid))
