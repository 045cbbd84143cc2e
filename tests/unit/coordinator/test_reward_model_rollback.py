"""After over-optimisation, the run rolls back to the last good reward model and reports an alarm."""

import pytest

from shared.contracts.card import EpochScore
from shared.contracts.progress import RunSummary
from shared.store import keys
from tests.unit.coordinator.harness import RUN, Harness, started_run


async def play(harness: Harness, truths: list[float], scores: list[float]) -> None:
    """Complete epochs with this true progress, which every reward model scores like this."""
    rows = [EpochScore(epoch=n, segments=4, model_score=score, judge_score=0.5) for n, score in enumerate(scores)]
    for epoch, truth in enumerate(truths):
        await harness.train(epoch, metrics={"milestones_mean": truth})
        await harness.judge(epoch)
        await harness.train_reward_model(epoch, epochs=rows[: epoch + 1])
        await harness.passes()


async def shaped_by(harness: Harness, epoch: int) -> int | None:
    """The epoch whose reward model shapes this epoch."""
    model = (await harness.start_order(epoch)).reward_model
    return None if model is None else model.epoch


async def test_two_diverging_epochs_roll_back_to_the_model_before_them() -> None:
    harness = await started_run(epochs=9)
    await play(harness, [1.0, 3.0, 2.5, 2.0], [0.0, 0.2, 0.4, 0.6])
    assert [await shaped_by(harness, epoch) for epoch in range(5)] == [None, 0, 1, 2, 0]
    summary = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN)))
    assert [row.alarm is not None for row in summary.epochs] == [False, False, False, True]
    assert str(summary.epochs[3].alarm).startswith("From epoch 1 to 3 the reward model's score rose from 0.20 to 0.60")


async def test_after_the_recovery_the_newest_model_is_used() -> None:
    harness = await started_run(epochs=9)
    await play(harness, [1.0, 3.0, 2.5, 2.0, 3.5], [0.0, 0.2, 0.4, 0.6, 0.7])
    assert await shaped_by(harness, 5) == 4
    await harness.train(5, metrics={"milestones_mean": 4.0})
    await harness.judge(5)
    await harness.train_reward_model(5, passed=False)
    await harness.passes()
    assert await shaped_by(harness, 6) == 4


async def test_a_model_with_another_layout_is_replaced_by_the_last_good_one() -> None:
    harness = await started_run(epochs=9)
    await harness.complete_epoch(0)
    await harness.train(1)
    await harness.judge(1)
    await harness.train_reward_model(1, observation="obs/v0")
    await harness.passes()
    assert await shaped_by(harness, 2) == 0


@pytest.mark.parametrize("view", ["counters/v1", "obs/v1"])
async def test_a_model_of_either_view_shapes_the_next_epoch(view: str) -> None:
    harness = await started_run(epochs=9)
    await harness.complete_epoch(0)
    await harness.train(1)
    await harness.judge(1)
    await harness.train_reward_model(1, observation=view)
    await harness.passes()
    assert await shaped_by(harness, 2) == 1
