"""With `judge_interval` N, epochs 0, N, 2N are judged; the others need neither scores nor a reward model."""

import pytest

from services.coordinator.reconcile import epoch_metrics
from shared.contracts.driver import EVALUATION_S
from shared.contracts.run import RunConfig
from tests.unit.coordinator.harness import RUN, Harness, started_run
from tests.unit.coordinator.test_epoch_metrics import value
from tests.unit.coordinator.test_progress import progress
from tests.unit.coordinator.test_reasons import rows
from tests.unit.coordinator.test_stages import BATCHES, EVALUATE_S, JUDGE_S, PLAY_S, TEACH_S, live_through

EPOCH_S = PLAY_S + EVALUATE_S


async def unjudged_epoch(harness: Harness, epoch: int) -> None:
    """An epoch between two judged ones: the trainer records nothing."""
    await harness.train(epoch, segments=0, seconds=PLAY_S, steps=BATCHES, metrics={EVALUATION_S: EVALUATE_S})
    await harness.passes()


async def test_with_overlap_an_unjudged_last_epoch_waits_for_no_judges() -> None:
    harness = await started_run(judge_interval=2, epochs=4, overlap=True)
    await live_through(harness, 0)
    await harness.passes()
    await unjudged_epoch(harness, 1)
    shown = await progress(harness)
    assert shown.epoch == 2
    assert shown.eta_s == pytest.approx(2 * EPOCH_S, rel=0.05)


def test_by_default_every_epoch_is_judged() -> None:
    stored = RunConfig.from_bytes(b'{"epochs": 4}')
    assert [stored.judges_epoch(epoch) for epoch in range(4)] == [True] * 4
    assert stored.judged_epochs(4) == 4


@pytest.mark.parametrize(("epochs", "judged"), [(0, 0), (1, 1), (3, 1), (4, 2), (7, 3)])
def test_the_judged_epochs_are_counted(epochs: int, judged: int) -> None:
    config = RunConfig(judge_interval=3)
    assert config.judged_epochs(epochs) == judged == sum(config.judges_epoch(epoch) for epoch in range(epochs))


async def test_an_epoch_between_is_complete_without_a_card_and_keeps_the_model() -> None:
    harness = await started_run(judge_interval=2, epochs=4)
    await harness.complete_epoch(0)
    await unjudged_epoch(harness, 1)
    first, second = [(await harness.start_order(epoch)).reward_model for epoch in (1, 2)]
    assert first is not None
    assert first == second
    await harness.train(2)
    await harness.passes(3)
    assert await harness.state() == "running", "epoch 2 waits for its judges"
    await harness.judge(2)
    await harness.train_reward_model(2)
    await harness.passes()
    newest = (await harness.start_order(3)).reward_model
    assert newest is not None
    assert newest.epoch == 2
    await unjudged_epoch(harness, 3)
    await harness.passes()
    assert await harness.state() == "finished"
    assert (await harness.models.runs.latest(RUN)).reason is None


async def test_nothing_of_an_epoch_between_is_published_again() -> None:
    harness = await started_run(judge_interval=2, epochs=2)
    await harness.complete_epoch(0)
    await harness.train(1, segments=0)
    await harness.rewardmodel_events()
    await harness.passes(5, seconds=600)
    assert await harness.rewardmodel_events() == []


async def test_the_reason_of_an_unshaped_epoch_names_the_last_judged_one() -> None:
    harness = await started_run(judge_interval=3)
    await harness.complete_epoch(0, passed=False)
    await unjudged_epoch(harness, 1)
    await unjudged_epoch(harness, 2)
    assert "the reward model of epoch 0 was not used" in str((await rows(harness))[2].not_shaped)


async def test_the_remaining_time_counts_only_judged_epochs() -> None:
    harness = await started_run(judge_interval=2, epochs=5)  # epochs 0, 2 and 4 are judged
    await live_through(harness, 0)
    await harness.passes()
    shown = await progress(harness)
    assert shown.eta_s == pytest.approx(4 * EPOCH_S + 2 * (JUDGE_S + TEACH_S))
    await unjudged_epoch(harness, 1)
    assert (await progress(harness)).eta_s == pytest.approx(3 * EPOCH_S + 2 * (JUDGE_S + TEACH_S))


async def test_the_age_of_a_model_counts_judged_epochs() -> None:
    harness = await started_run(judge_interval=8, epochs=9)
    await harness.complete_epoch(0)
    for epoch in range(1, 8):
        await unjudged_epoch(harness, epoch)
    assert value("number") == 7
    assert value("reward_model_age_epochs") == 0
    row = (await rows(harness))[-1]
    epoch_metrics.set_epoch(RUN, row)
    assert value("reward_model_age_epochs") == 7, "with a judged epoch each it would be old"
