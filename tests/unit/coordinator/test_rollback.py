"""A reward model that praises decline shapes no further epoch: the run goes back to the last good one, and says so."""

from shared.contracts.card import EpochScore
from shared.contracts.progress import RunSummary
from shared.store import keys
from tests.unit.coordinator.world import RUN, World


async def play(world: World, truths: list[float], scores: list[float]) -> None:
    """Whole epochs with this true progress, and this score in the eyes of every reward model."""
    rows = [EpochScore(epoch=n, segments=4, model_score=score, judge_score=0.5) for n, score in enumerate(scores)]
    for epoch, truth in enumerate(truths):
        await world.train(epoch, metrics={"milestones_mean": truth})
        await world.judge(epoch)
        await world.train_reward_model(epoch, epochs=rows[: epoch + 1])
        await world.rounds()


async def shaped_by(world: World, epoch: int) -> int | None:
    """The epoch after which the reward model of an epoch was trained."""
    model = (await world.start_order(epoch)).reward_model
    return None if model is None else model.epoch


async def begun() -> World:
    """A long run that waits for its first epoch."""
    world = World()
    await world.ask(epochs=9)
    await world.rounds()
    return world


async def test_after_two_epochs_of_praised_decline_the_last_model_before_it_shapes_again() -> None:
    world = await begun()
    await play(world, [1.0, 3.0, 2.5, 2.0], [0.0, 0.2, 0.4, 0.6])
    assert [await shaped_by(world, epoch) for epoch in range(5)] == [None, 0, 1, 2, 0]
    summary = RunSummary.from_bytes(await world.store.get(keys.run_summary(RUN)))
    assert [row.alarm is not None for row in summary.epochs] == [False, False, False, True]
    assert str(summary.epochs[3].alarm).startswith("From epoch 1 to 3 the reward model's score rose from 0.20 to 0.60")


async def test_after_the_recovery_the_newest_model_shapes_and_the_suspects_never_do() -> None:
    world = await begun()
    await play(world, [1.0, 3.0, 2.5, 2.0, 3.5], [0.0, 0.2, 0.4, 0.6, 0.7])
    assert await shaped_by(world, 5) == 4
    await world.train(5, metrics={"milestones_mean": 4.0})
    await world.judge(5)
    await world.train_reward_model(5, passed=False)
    await world.rounds()
    assert await shaped_by(world, 6) == 4


async def test_a_model_that_reads_another_layout_gives_way_to_the_last_good_one() -> None:
    world = await begun()
    await world.whole_epoch(0)
    await world.train(1)
    await world.judge(1)
    await world.train_reward_model(1, observation="obs/v0")
    await world.rounds()
    assert await shaped_by(world, 2) == 0
