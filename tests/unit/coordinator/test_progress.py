"""Where a run is, in figures for people: of the epoch that runs now, and nothing that is not known."""

from shared.contracts.driver import DriverHeartbeat
from shared.contracts.ids import EpisodeId
from shared.contracts.progress import EpochRow, RunProgress, RunSummary
from shared.store import keys
from tests.unit.coordinator.world import RUN, World, segment


async def second_epoch() -> World:
    """A run of three epochs, each of 600 steps, whose second one has begun."""
    world = World()
    await world.ask()
    await world.rounds()
    await beat(world, 0, 600)
    await world.whole_epoch(0)
    await world.rounds()
    return world


async def beat(world: World, epoch: int, steps: int) -> None:
    """A sign of life from this step of an epoch, at ten steps a second."""
    sign = DriverHeartbeat(run=RUN, epoch=epoch, steps=steps, steps_per_s=10.0, time=world.time)
    await world.store.put(keys.driver_heartbeat(RUN), sign.to_bytes())


async def progress(world: World) -> RunProgress:
    """What people are shown after another look."""
    await world.rounds()
    return RunProgress.from_bytes(await world.store.get(keys.progress(RUN)))


async def test_a_sign_of_life_from_an_earlier_epoch_says_nothing_of_this_one() -> None:
    shown = await progress(await second_epoch())
    assert (shown.epoch, shown.steps, shown.steps_per_s, shown.eta_s) == (1, 0, None, None)
    assert shown.last_sign is not None


async def test_the_time_to_come_is_that_of_all_steps_that_are_planned() -> None:
    world = await second_epoch()
    await beat(world, 1, 300)
    shown = await progress(world)
    assert (shown.steps, shown.eta_s) == (300, (300 + 600) / 10)


async def test_a_run_that_is_being_stopped_has_no_time_to_come() -> None:
    world = await second_epoch()
    await beat(world, 1, 300)
    await world.desk.stop(RUN)
    shown = await progress(world)
    assert (shown.state, shown.eta_s) == ("stopping", None)


async def test_the_accuracy_is_that_of_the_newest_reward_model() -> None:
    world = await second_epoch()
    await world.train(1)
    await world.judge(1)
    await world.train_reward_model(1, accuracy=0.9)
    await world.rounds()
    assert (await progress(world)).reward_model_accuracy == 0.9


async def test_segments_that_an_expiry_rule_took_are_not_counted_as_less_than_none() -> None:
    world = await second_epoch()
    await world.train(1)
    await world.judge(1)
    for number in (0, 1):
        name = segment(1, number)
        await world.store.delete(keys.segment(RUN, 1, EpisodeId(name[:9]), name))
    shown = await progress(world)
    assert (shown.segments_recorded, shown.segments_judged, shown.segments_left) == (2, 4, 0)


async def test_a_row_names_no_model_that_was_ordered_and_did_not_shape() -> None:
    world = await second_epoch()
    assert (await world.start_order(1)).reward_model is not None
    await world.train(1, reward_model=None)
    await world.rounds()
    assert (await row(world, 1)).reward_model_epoch is None


async def test_an_epoch_that_took_no_time_has_no_speed() -> None:
    world = await second_epoch()
    await world.train(1, seconds=0.0)
    await world.rounds()
    assert (await row(world, 1)).steps_per_s is None


async def row(world: World, epoch: int) -> EpochRow:
    """The row of an epoch in the table of the run."""
    return RunSummary.from_bytes(await world.store.get(keys.run_summary(RUN))).epochs[epoch]
