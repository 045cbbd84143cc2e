"""The progress of a run: figures of the current epoch; unknown ones are null."""

from shared.contracts.card import ComparedPairs
from shared.contracts.driver import DriverHeartbeat
from shared.contracts.ids import EpisodeId
from shared.contracts.progress import EpochRow, RunProgress, RunSummary
from shared.store import keys
from tests.unit.coordinator.harness import RUN, Harness, segment, started_run


async def second_epoch() -> Harness:
    """A run of three epochs of 600 steps, in its second epoch."""
    harness = await started_run()
    await send_heartbeat(harness, 0, 600)
    await harness.complete_epoch(0)
    await harness.passes()
    return harness


async def send_heartbeat(harness: Harness, epoch: int, steps: int) -> None:
    """Write a heartbeat at this step of an epoch, at ten steps per second."""
    heartbeat = DriverHeartbeat(run=RUN, epoch=epoch, steps=steps, steps_per_s=10.0, time=harness.time)
    await harness.store.put(keys.driver_heartbeat(RUN), heartbeat.to_bytes())


async def progress(harness: Harness) -> RunProgress:
    """The progress after another pass."""
    await harness.passes()
    return RunProgress.from_bytes(await harness.store.get(keys.progress(RUN)))


async def test_a_heartbeat_of_an_earlier_epoch_gives_no_steps() -> None:
    shown = await progress(await second_epoch())
    assert (shown.epoch, shown.steps, shown.steps_per_s, shown.stage) == (1, 0, None, "starting")
    assert shown.last_sign is not None


async def test_the_remaining_time_covers_all_planned_steps() -> None:
    harness = await second_epoch()
    await send_heartbeat(harness, 1, 300)
    shown = await progress(harness)
    assert (shown.steps, shown.eta_s) == (300, (340 + 640) / 10)  # 600 steps are ten batches of 64


async def test_a_stopping_run_has_no_remaining_time() -> None:
    harness = await second_epoch()
    await send_heartbeat(harness, 1, 300)
    await harness.service.stop(RUN)
    shown = await progress(harness)
    assert (shown.state, shown.eta_s) == ("stopping", None)


async def test_progress_shows_the_accuracy_of_the_newest_reward_model() -> None:
    harness = await second_epoch()
    await harness.train(1)
    await harness.judge(1)
    await harness.train_reward_model(1, accuracy=0.9)
    await harness.passes()
    assert (await progress(harness)).reward_model_accuracy == 0.9


async def test_expired_segments_do_not_make_the_count_negative() -> None:
    harness = await second_epoch()
    await harness.train(1)
    await harness.judge(1)
    for number in (0, 1):
        name = segment(1, number)
        await harness.store.delete(keys.segment(RUN, 1, EpisodeId(name[:9]), name))
    shown = await progress(harness)
    assert (shown.segments_recorded, shown.segments_judged, shown.segments_left) == (2, 4, 0)


async def test_a_row_omits_an_ordered_model_that_was_not_used() -> None:
    harness = await second_epoch()
    assert (await harness.start_order(1)).reward_model is not None
    await harness.train(1, reward_model=None)
    await harness.passes()
    assert (await row(harness, 1)).reward_model_epoch is None


async def test_scores_of_segments_that_the_epoch_does_not_list_are_not_counted() -> None:
    """A driver that died had recorded them, and the one after it played on otherwise."""
    harness = await second_epoch()
    await harness.train(1, segments=3)
    await harness.judge(1, segments=5)
    await harness.passes()
    found = await row(harness, 1)
    assert (found.segments_recorded, found.segments_judged, found.segments_waiting) == (3, 3, 0)


async def test_a_row_counts_compared_pairs_only_if_they_taught_the_model() -> None:
    harness = await second_epoch()
    assert (await row(harness, 0)).reward_model_compared is None
    await harness.train(1)
    await harness.judge(1)
    await harness.train_reward_model(1, labels="pairs", compared=ComparedPairs(train=7))
    await harness.passes()
    assert (await row(harness, 1)).reward_model_compared == 7


async def test_an_epoch_of_zero_seconds_has_no_rate() -> None:
    harness = await second_epoch()
    await harness.train(1, seconds=0.0)
    await harness.passes()
    assert (await row(harness, 1)).steps_per_s is None


async def row(harness: Harness, epoch: int) -> EpochRow:
    """The row of an epoch in the summary of the run."""
    return RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN))).epochs[epoch]
