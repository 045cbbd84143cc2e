"""The coordinator moves a run through its epochs by the commits of others, not by its memory."""

from datetime import timedelta

import pytest

from services.coordinator.domain.decisions import CARD_GRACE, ChangeState, Timeouts, decide
from services.coordinator.domain.run_view import RunView
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochStart
from shared.contracts.progress import RunProgress, RunSummary
from shared.contracts.run import RunRecord
from shared.store import keys
from shared.store.port import NotFound
from tests.unit.coordinator.harness import RUN, Harness, judged_epoch, segment, started_run, trained_epoch


async def test_a_run_of_three_epochs_goes_from_created_to_finished() -> None:
    harness = await started_run()
    assert await harness.state() == "running"
    assert (await harness.start_order(0)).reward_model is None
    for epoch in range(3):
        await harness.complete_epoch(epoch)
    await harness.passes()
    assert await harness.state() == "finished"
    with pytest.raises(NotFound):
        await harness.start_order(3)


async def test_the_next_epoch_uses_the_reward_model_of_this_one() -> None:
    harness = await started_run()
    await harness.complete_epoch(0)
    model = (await harness.start_order(1)).reward_model
    assert model is not None
    assert (model.epoch, model.weights_digest) == (0, sha256(b"weights 0"))
    assert model.card_digest == sha256(await harness.store.get(keys.reward_model_card(RUN, 0)))


async def test_an_unreadable_score_counts_as_missing() -> None:
    harness = await judged_epoch()
    await harness.store.put(keys.score(RUN, 0, segment(0, 3)), b"{")
    await harness.train_reward_model(0)
    await harness.passes()
    assert (await harness.start_order(1)).reward_model is not None
    assert (await harness.models.scores.count(RUN, 0)).outcomes.keys() == {segment(0, number) for number in range(3)}


async def test_a_pixel_policy_is_shaped_by_a_feature_based_model() -> None:
    harness = await started_run(observation="pixels/v1")
    await harness.complete_epoch(0)
    assert (await harness.start_order(1)).reward_model is not None


async def test_a_model_that_failed_its_gates_is_replaced_by_the_last_good_one() -> None:
    harness = await started_run(epochs=4)
    await harness.complete_epoch(0, passed=True)
    await harness.complete_epoch(1, passed=False)
    model = (await harness.start_order(2)).reward_model
    assert model is not None
    assert model.epoch == 0


async def test_no_model_is_used_without_shaping_or_without_a_good_one() -> None:
    for config, passed in (({}, False), ({"shaping": {"mode": "none"}}, True)):
        harness = await started_run(**config)
        await harness.complete_epoch(0, passed=passed)
        assert (await harness.start_order(1)).reward_model is None


async def test_the_run_waits_for_judges_and_then_for_the_reward_model() -> None:
    harness = await trained_epoch()
    await harness.judge(0, segments=3)
    await harness.passes(3)
    assert await doing(harness) == "Epoch 0: 1 of 4 segments wait for their judges."
    await harness.store.create(keys.score(RUN, 0, harness.scores(0, 3).segment), harness.scores(0, 3).to_bytes())
    await harness.passes()
    assert await doing(harness) == "Epoch 0 waits for its reward model."
    await harness.train_reward_model(0)
    await harness.passes()
    assert (await harness.start_order(1)).epoch == 1


async def test_the_run_proceeds_after_the_judges_deadline() -> None:
    harness = await trained_epoch(judge_deadline_s=100)
    harness.time += timedelta(seconds=99) + CARD_GRACE
    await harness.passes(seconds=2)
    with pytest.raises(NotFound):
        await harness.start_order(1)
    await harness.passes()
    assert (await harness.start_order(1)).reward_model is None


async def test_overlap_starts_the_next_epoch_before_judging_ends() -> None:
    harness = await trained_epoch(overlap=True)
    await harness.passes()
    assert (await harness.start_order(1)).reward_model is None
    await harness.train(1)
    await harness.passes()
    with pytest.raises(NotFound):  # its reward model would be two epochs old
        await harness.start_order(2)
    await harness.judge(0)
    await harness.train_reward_model(0)
    await harness.passes()
    model = (await harness.start_order(2)).reward_model
    assert model is not None
    assert model.epoch == 0


async def test_run_hours_end_a_run_without_planned_epochs() -> None:
    harness = await started_run(epochs=None, run_hours=1)
    await harness.complete_epoch(0)
    harness.time += timedelta(hours=1)
    await harness.complete_epoch(1)
    assert await harness.state() == "finished"


async def test_two_active_coordinators_order_each_epoch_once() -> None:
    harness = Harness()
    await harness.create_run()
    other = harness.another_coordinator(fence=2)
    await harness.passes()
    await other.passes()
    assert (await harness.start_order(0)).fence == 1
    received = await harness.trainer_events()
    assert received.count("rm.ready") == 1


async def test_a_coordinator_without_the_lease_does_nothing() -> None:
    harness = Harness()
    await harness.create_run()
    harness.fence = None
    await harness.reconciler.reconcile(RUN)
    assert await harness.state() == "created"


async def test_a_coordinator_that_slept_after_its_lease_check_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its successor's fence is higher: an order with the old one would make the fences of the epochs decrease."""
    harness = await judged_epoch()
    await harness.train_reward_model(0)
    read = harness.models.views.read

    async def sleep_and_read(record: RunRecord) -> RunView:
        harness.fence = None
        return await read(record)

    monkeypatch.setattr(harness.models.views, "read", sleep_and_read)
    await harness.reconciler.reconcile(RUN)
    with pytest.raises(NotFound):
        await harness.start_order(1)


async def test_another_coordinator_completes_a_half_written_start() -> None:
    harness = Harness()
    record = await harness.create_run()
    order = EpochStart(run=RUN, epoch=0, fence=1, config=record.config, created=harness.time)
    await harness.store.create(keys.epoch_start(RUN, 0), order.to_bytes())  # the record is not written
    other = harness.another_coordinator(fence=2)
    await other.passes(2)
    assert await harness.state() == "running"
    assert (await harness.start_order(0)).fence == 1


async def test_a_silent_trainer_fails_the_run_with_a_reason() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes(2)
    await harness.passes(30, seconds=30)
    assert await harness.state() == "running"
    await harness.passes(2)
    record = await harness.models.runs.latest(RUN)
    assert record.state == "failed"
    assert record.reason == "The trainer sent no heartbeat in epoch 0 for 15 minutes."


@pytest.mark.parametrize(("silence_s", "duration"), [(30, "30 seconds"), (90, "90 seconds"), (120, "2 minutes")])
async def test_the_reason_names_the_silence_timeout(silence_s: int, duration: str) -> None:
    harness = await started_run()
    view = await harness.models.views.read(await harness.models.runs.latest(RUN))
    limits = Timeouts(silence=timedelta(seconds=silence_s))
    decision = decide(view, harness.time, limits, limits.silence + timedelta(seconds=1))
    assert decision == ChangeState("failed", f"The trainer sent no heartbeat in epoch 0 for {duration}.")


async def test_time_without_polls_does_not_count_as_silence() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes(2)
    await harness.send_heartbeat()
    await harness.passes()
    harness.time += timedelta(hours=8)  # the machine was suspended; the coordinator wakes before the driver
    await harness.passes(2)
    assert await harness.state() == "running"
    await harness.send_heartbeat()
    await harness.passes(29, seconds=30)
    harness.fence = None  # another coordinator leads for a while
    harness.time += timedelta(minutes=20)
    harness.fence = 3
    await harness.passes()
    assert await harness.state() == "running"
    await harness.passes(4, seconds=30)
    assert await harness.state() == "failed"


async def test_progress_and_summary_are_written_to_the_store() -> None:
    harness = await started_run(epochs=2)
    await harness.complete_epoch(0)
    await harness.train(1)
    await harness.judge(1, status="dead")
    await harness.passes()
    progress = RunProgress.from_bytes(await harness.store.get(keys.progress(RUN)))
    assert (progress.epoch, progress.segments_recorded, progress.segments_dead, progress.segments_left) == (1, 4, 4, 0)
    await harness.train_reward_model(1, accuracy=0.75)
    await harness.passes(2)
    summary = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN)))
    assert summary.state == "finished"
    first, second = summary.epochs
    assert (first.segments_recorded, first.segments_judged, first.votes, first.agreement) == (4, 4, 12, 0.5)
    assert (first.reward_model, first.reward_model_accuracy) == (None, 0.8)
    assert (second.segments_judged, second.segments_dead, second.agreement) == (0, 4, None)
    assert (second.reward_model, second.reward_model_epoch) == (sha256(b"weights 0"), 0)
    lines = (await harness.store.get(keys.scores_jsonl(RUN, 0))).splitlines()
    assert len(lines) == 4


async def test_scores_of_a_partly_judged_epoch_are_written_when_the_run_ends() -> None:
    harness = await trained_epoch(epochs=1, judge_deadline_s=100)
    await harness.judge(0, segments=3)
    await harness.passes()
    assert not await harness.store.exists(keys.scores_jsonl(RUN, 0))
    await harness.passes(150)
    assert await harness.state() == "finished"
    assert len((await harness.store.get(keys.scores_jsonl(RUN, 0))).splitlines()) == 3


async def doing(harness: Harness) -> str:
    """The sentence that describes what the run does."""
    return RunProgress.from_bytes(await harness.store.get(keys.progress(RUN))).doing
