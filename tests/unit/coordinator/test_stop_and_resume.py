"""A person stops a run and lets it go on; finished work is not repeated."""

from datetime import timedelta

import pytest

from services.coordinator.domain.lifecycle import WrongState
from shared.contracts.driver import DriverFailed, DriverStopped
from shared.contracts.run import RunRecord
from shared.store import keys
from tests.unit.coordinator.world import RUN, World


async def started() -> World:
    """A run whose epoch 0 trains."""
    world = World()
    await world.ask()
    await world.rounds()
    await world.trainer_hears()
    return world


async def confirm_stop(world: World, attempt: int = 1) -> None:
    """The driver obeys the stop with a checkpoint."""
    said = DriverStopped(run=RUN, epoch=0, attempt=attempt, steps=300, time=world.time)
    await world.store.create(keys.driver_stopped(RUN, attempt), said.to_bytes())


async def test_stop_asks_the_trainer_and_waits_for_its_checkpoint() -> None:
    world = await started()
    await world.desk.stop(RUN)
    assert await world.trainer_hears() == ["run.changed"]
    await world.rounds(3)
    assert await world.state() == "stopping"
    await confirm_stop(world)
    await world.rounds()
    assert await world.state() == "stopped"


async def test_stop_ends_in_under_a_minute_even_if_the_trainer_is_dead() -> None:
    world = await started()
    await world.desk.stop(RUN)
    world.time += timedelta(seconds=51)
    await world.rounds()
    record = await world.desk.runs.latest(RUN)
    assert record.state == "stopped"
    assert "no checkpoint" in str(record.reason)


async def test_resume_goes_on_with_the_same_epoch_and_another_attempt() -> None:
    world = await started()
    await world.desk.stop(RUN)
    await confirm_stop(world)
    await world.rounds()
    await world.trainer_hears()
    record = await world.desk.resume(RUN)
    assert (record.state, record.attempt, record.epoch) == ("running", 2, 0)
    assert await world.trainer_hears() == ["run.changed", "rm.ready"]
    await world.whole_epoch(0)
    assert (await world.start_order(1)).epoch == 1


async def test_stop_between_two_epochs_needs_nobody() -> None:
    world = await started()
    await world.train(0)
    await world.desk.stop(RUN)
    await world.rounds()
    assert await world.state() == "stopped"


async def test_a_run_that_is_resumed_after_the_deadline_gives_its_judges_their_time_again() -> None:
    world = World()
    await world.ask(epochs=1, judge_deadline_s=600)
    await world.rounds()
    await world.train(0)
    await world.judge_hears()
    await world.desk.stop(RUN)
    await world.rounds()
    assert await world.state() == "stopped"
    world.time += timedelta(hours=1)  # the judges are repaired
    await world.desk.resume(RUN)
    await world.rounds(20)
    assert len(await world.judge_hears()) == 4
    assert await world.state() == "running"
    await world.judge(0)
    await world.train_reward_model(0)
    await world.rounds(2)
    record = await world.desk.runs.latest(RUN)
    assert (record.state, record.reason) == ("finished", None)


async def test_a_run_that_was_never_started_stops_at_once() -> None:
    world = World()
    await world.ask()
    assert (await world.desk.stop(RUN)).state == "stopped"


async def test_stopping_twice_is_stopping_once() -> None:
    world = await started()
    first = await world.desk.stop(RUN)
    assert await world.desk.stop(RUN) == first


async def test_a_failed_driver_fails_the_run_and_resume_tries_again() -> None:
    world = await started()
    said = DriverFailed(run=RUN, epoch=0, attempt=1, reason="The emulator broke five times.", time=world.time)
    await world.store.create(keys.driver_failed(RUN, 1), said.to_bytes())
    await world.rounds()
    record = await world.desk.runs.latest(RUN)
    assert (record.state, record.reason) == ("failed", "The emulator broke five times.")
    assert (await world.desk.resume(RUN)).attempt == 2
    await world.rounds()
    assert await world.state() == "running"


async def test_a_finished_run_refuses_both_commands() -> None:
    world = World()
    await world.ask(epochs=1)
    await world.rounds()
    await world.whole_epoch(0)
    await world.rounds()
    with pytest.raises(WrongState, match="only a run that is created or running can be stopped"):
        await world.desk.stop(RUN)
    with pytest.raises(WrongState, match="start a new run instead"):
        await world.desk.resume(RUN)


async def test_of_a_stop_and_a_round_at_the_same_moment_one_is_done_after_the_other() -> None:
    world = await started()
    before = await world.desk.runs.latest(RUN)
    stopped: RunRecord = await world.desk.stop(RUN)
    assert stopped.revision == before.revision + 1
    await world.patrol.visit(RUN)
    assert await world.state() == "stopping"
