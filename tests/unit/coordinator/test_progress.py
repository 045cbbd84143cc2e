"""Where a run is, in figures for people: of the epoch that runs now, and nothing that is not known."""

from shared.contracts.driver import DriverHeartbeat
from shared.contracts.ids import EpisodeId
from shared.contracts.progress import EpochRow, RunProgress, RunSummary
from shared.store import keys
from tests.unit.coordinator.harness import RUN, Harness, segment


async def second_epoch() -> Harness:
    """A run of three epochs, each of 600 steps, whose second one has begun."""
    harness = Harness()
    await harness.create_run()
    await harness.passes()
    await beat(harness, 0, 600)
    await harness.complete_epoch(0)
    await harness.passes()
    return harness


async def beat(harness: Harness, epoch: int, steps: int) -> None:
    """A sign of life from this step of an epoch, at ten steps a second."""
    sign = DriverHeartbeat(run=RUN, epoch=epoch, steps=steps, steps_per_s=10.0, time=harness.time)
    await harness.store.put(keys.driver_heartbeat(RUN), sign.to_bytes())


async def progress(harness: Harness) -> RunProgress:
    """What people are shown after another look."""
    await harness.passes()
    return RunProgress.from_bytes(await harness.store.get(keys.progress(RUN)))


async def test_a_sign_of_life_from_an_earlier_epoch_says_nothing_of_this_one() -> None:
    shown = await progress(await second_epoch())
    assert (shown.epoch, shown.steps, shown.steps_per_s, shown.eta_s) == (1, 0, None, None)
    assert shown.last_sign is not None


async def test_the_time_to_come_is_that_of_all_steps_that_are_planned() -> None:
    harness = await second_epoch()
    await beat(harness, 1, 300)
    shown = await progress(harness)
    assert (shown.steps, shown.eta_s) == (300, (300 + 600) / 10)


async def test_a_run_that_is_being_stopped_has_no_time_to_come() -> None:
    harness = await second_epoch()
    await beat(harness, 1, 300)
    await harness.service.stop(RUN)
    shown = await progress(harness)
    assert (shown.state, shown.eta_s) == ("stopping", None)


async def test_the_accuracy_is_that_of_the_newest_reward_model() -> None:
    harness = await second_epoch()
    await harness.train(1)
    await harness.judge(1)
    await harness.train_reward_model(1, accuracy=0.9)
    await harness.passes()
    assert (await progress(harness)).reward_model_accuracy == 0.9


async def test_segments_that_an_expiry_rule_took_are_not_counted_as_less_than_none() -> None:
    harness = await second_epoch()
    await harness.train(1)
    await harness.judge(1)
    for number in (0, 1):
        name = segment(1, number)
        await harness.store.delete(keys.segment(RUN, 1, EpisodeId(name[:9]), name))
    shown = await progress(harness)
    assert (shown.segments_recorded, shown.segments_judged, shown.segments_left) == (2, 4, 0)


async def test_a_row_names_no_model_that_was_ordered_and_did_not_shape() -> None:
    harness = await second_epoch()
    assert (await harness.start_order(1)).reward_model is not None
    await harness.train(1, reward_model=None)
    await harness.passes()
    assert (await row(harness, 1)).reward_model_epoch is None


async def test_an_epoch_that_took_no_time_has_no_speed() -> None:
    harness = await second_epoch()
    await harness.train(1, seconds=0.0)
    await harness.passes()
    assert (await row(harness, 1)).steps_per_s is None


async def row(harness: Harness, epoch: int) -> EpochRow:
    """The row of an epoch in the table of the run."""
    return RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN))).epochs[epoch]
