"""A run is stopped and resumed; finished work is not repeated."""

from datetime import timedelta

import pytest

from services.coordinator.domain.lifecycle import RunConflict
from shared.contracts.driver import DriverFailed, DriverStopped
from shared.contracts.run import RunRecord
from shared.store import keys
from tests.unit.coordinator.harness import RUN, Harness, started_run, trained_epoch


async def training_run() -> Harness:
    """A run that trains epoch 0."""
    harness = await started_run()
    await harness.trainer_events()
    return harness


async def confirm_stop(harness: Harness, attempt: int = 1) -> None:
    """Confirm the stop as the driver does, with a checkpoint."""
    document = DriverStopped(run=RUN, epoch=0, attempt=attempt, steps=300, time=harness.time)
    await harness.store.create(keys.driver_stopped(RUN, attempt), document.to_bytes())


async def test_stop_asks_the_trainer_and_waits_for_its_checkpoint() -> None:
    harness = await training_run()
    await harness.service.stop(RUN)
    assert await harness.trainer_events() == ["run.changed"]
    await harness.passes(3)
    assert await harness.state() == "stopping"
    await confirm_stop(harness)
    await harness.passes()
    assert await harness.state() == "stopped"


async def test_stop_ends_in_under_a_minute_even_if_the_trainer_is_dead() -> None:
    harness = await training_run()
    await harness.service.stop(RUN)
    harness.time += timedelta(seconds=51)
    await harness.passes()
    record = await harness.models.runs.latest(RUN)
    assert record.state == "stopped"
    assert "without a new checkpoint" in str(record.reason)


async def test_after_hours_of_training_a_stop_still_waits_for_the_checkpoint() -> None:
    harness = await training_run()
    harness.time += timedelta(hours=5)
    await harness.service.stop(RUN)
    await harness.passes()
    assert await harness.state() == "stopping"


async def test_resume_continues_the_epoch_with_a_new_attempt() -> None:
    harness = await training_run()
    await harness.service.stop(RUN)
    await confirm_stop(harness)
    await harness.passes()
    await harness.trainer_events()
    record = await harness.service.resume(RUN)
    assert (record.state, record.attempt, record.epoch) == ("running", 2, 0)
    assert await harness.trainer_events() == ["run.changed", "rm.ready"]
    await harness.complete_epoch(0)
    assert (await harness.start_order(1)).epoch == 1


async def test_stop_between_two_epochs_needs_no_trainer() -> None:
    harness = await training_run()
    await harness.train(0)
    await harness.service.stop(RUN)
    await harness.passes()
    assert await harness.state() == "stopped"


async def test_a_resume_after_the_deadline_restarts_the_deadline() -> None:
    harness = await trained_epoch(epochs=1, judge_deadline_s=600)
    await harness.judge_events()
    await harness.service.stop(RUN)
    await harness.passes()
    assert await harness.state() == "stopped"
    harness.time += timedelta(hours=1)  # the judges are repaired
    await harness.service.resume(RUN)
    await harness.passes(20)
    assert len(await harness.judge_events()) == 4
    assert await harness.state() == "running"
    await harness.judge(0)
    await harness.train_reward_model(0)
    await harness.passes(2)
    record = await harness.models.runs.latest(RUN)
    assert (record.state, record.reason) == ("finished", None)


async def test_a_created_run_stops_immediately() -> None:
    harness = Harness()
    await harness.create_run()
    assert (await harness.service.stop(RUN)).state == "stopped"


async def test_stop_is_idempotent() -> None:
    harness = await training_run()
    first = await harness.service.stop(RUN)
    assert await harness.service.stop(RUN) == first


async def test_a_failed_driver_fails_the_run_and_resume_retries() -> None:
    harness = await training_run()
    document = DriverFailed(run=RUN, epoch=0, attempt=1, reason="The emulator broke five times.", time=harness.time)
    await harness.store.create(keys.driver_failed(RUN, 1), document.to_bytes())
    await harness.passes()
    record = await harness.models.runs.latest(RUN)
    assert (record.state, record.reason) == ("failed", "The emulator broke five times.")
    assert (await harness.service.resume(RUN)).attempt == 2
    await harness.passes()
    assert await harness.state() == "running"


async def test_a_finished_run_refuses_stop_and_resume() -> None:
    harness = await started_run(epochs=1)
    await harness.complete_epoch(0)
    await harness.passes()
    with pytest.raises(RunConflict, match="only a created or running run can be stopped"):
        await harness.service.stop(RUN)
    with pytest.raises(RunConflict, match="start a new run instead"):
        await harness.service.resume(RUN)


async def test_a_stop_during_a_pass_takes_effect() -> None:
    harness = await training_run()
    before = await harness.models.runs.latest(RUN)
    stopped: RunRecord = await harness.service.stop(RUN)
    assert stopped.revision == before.revision + 1
    await harness.reconciler.reconcile(RUN)
    assert await harness.state() == "stopping"
