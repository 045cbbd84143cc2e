"""What a run waits for, for how long, and what its record says at the end."""

from datetime import timedelta

import pytest

from services.coordinator.domain.decisions import CARD_GRACE
from services.coordinator.domain.lifecycle import advance
from services.coordinator.domain.score_counter import ScoreCounter
from services.coordinator.reconcile.replay_backoff import MAX_INTERVAL, ReplayBackoff
from services.coordinator.reconcile.silence_timer import SilenceTimer
from shared.contracts.driver import DriverFailed
from shared.contracts.run import MAX_REASON_LENGTH
from shared.store import keys
from shared.store.port import NotFound
from tests.unit.coordinator.harness import RUN, START, Harness, started_run


async def test_the_second_epoch_waits_for_its_judges() -> None:
    harness = await started_run()
    await harness.complete_epoch(0)
    await harness.train(1)
    await harness.passes(3)
    with pytest.raises(NotFound):
        await harness.start_order(2)


async def test_a_run_with_overlap_ends_after_its_last_two_epochs_are_judged() -> None:
    harness = await started_run(epochs=2, overlap=True)
    await harness.train(0)
    await harness.passes()
    await harness.complete_epoch(1)
    await harness.passes()
    assert await harness.state() == "running"
    await harness.judge(0)
    await harness.train_reward_model(0)
    await harness.passes()
    assert await harness.state() == "finished"


async def test_run_hours_count_from_the_creation_of_the_run() -> None:
    harness = await started_run(epochs=None, run_hours=1)
    for epoch in range(2):
        assert await harness.state() == "running"
        harness.time += timedelta(minutes=40)
        await harness.complete_epoch(epoch)
    assert await harness.state() == "finished"


@pytest.mark.parametrize(("epochs", "named"), [(1, "epoch 0"), (3, "epochs 0, 1, 2")])
async def test_the_reason_lists_the_epochs_past_the_deadline(epochs: int, named: str) -> None:
    harness = await started_run(epochs=epochs, judge_deadline_s=1)
    for epoch in range(epochs):
        await harness.train(epoch)
        await harness.judge(epoch)  # without a reward model
        harness.time += timedelta(seconds=2) + CARD_GRACE
        await harness.passes(2)
    record = await harness.models.runs.latest(RUN)
    assert (record.state, record.reason) == ("finished", f"The judges' deadline passed in {named}.")


async def test_a_driver_failure_during_a_stop_fails_the_run() -> None:
    harness = await started_run()
    await harness.service.stop(RUN)
    failure = DriverFailed(run=RUN, epoch=0, attempt=1, reason="The disk is full.", time=harness.time)
    await harness.store.create(keys.driver_failed(RUN, 1), failure.to_bytes())
    await harness.passes()
    record = await harness.models.runs.latest(RUN)
    assert (record.state, record.reason) == ("failed", "The disk is full.")


async def test_resuming_a_created_run_changes_nothing() -> None:
    harness = Harness()
    record = await harness.create_run()
    assert await harness.service.resume(RUN) == record


async def test_a_record_keeps_its_highest_fence_and_shortens_its_reason() -> None:
    record = await Harness().create_run()
    running = advance(record, "running", START, fence=7)
    later = advance(running, "running", START, fence=3, reason="far too long " * MAX_REASON_LENGTH)
    assert (later.fence, later.revision) == (7, 2)
    assert str(later.reason).endswith("too long ...")


def test_a_segment_that_is_added_again_counts_once() -> None:
    harness, counter = Harness(), ScoreCounter()
    for _ in range(3):
        counter.add(harness.scores(0, 1))
    assert (counter.count("judged"), counter.votes, counter.score.count) == (1, 3, 1)


def test_the_replay_interval_is_at_most_ten_quiet_times() -> None:
    quiet, republished = timedelta(seconds=30), list[int]()
    backoff = ReplayBackoff(quiet)
    for second in range(0, 10_000, 10):
        if backoff.due("same", START + timedelta(seconds=second)):
            republished.append(second)
    assert republished[-1] - republished[-2] == MAX_INTERVAL * quiet.total_seconds()


def test_a_clock_set_back_does_not_reduce_the_silence() -> None:
    timer = SilenceTimer()
    observed = [timer.observe("same", START + timedelta(seconds=seconds)) for seconds in (0, 30, 0, 30)]
    assert [watched.total_seconds() for watched in observed] == [0, 30, 30, 60]
