"""Why a reward model is not used and why an epoch is not shaped, in words."""

from typing import Any

import pytest

from shared.contracts.card import Calibration
from shared.contracts.progress import EpochRow
from tests.unit.coordinator.harness import RUN, Harness, started_run, trained_epoch

NEEDED = {"pairs": 50, "episodes": 5, "accuracy_confident": 0.7, "over_step_index": 0.05, "ece": 0.25, "spread": 0.1}


async def rows(harness: Harness) -> list[EpochRow]:
    """The rows of the run as REST returns them."""
    return await harness.models.rows.finished(await harness.models.views.read(await harness.models.runs.latest(RUN)))


async def refused(epochs: int = 1, passed: bool = False, **card: Any) -> list[EpochRow]:
    """The rows of a run whose first reward model has this card, after `epochs` finished epochs."""
    harness = await started_run()
    for epoch in range(epochs):
        await harness.train(epoch)
        await harness.judge(epoch)
        await harness.train_reward_model(epoch, passed=passed, **card)
        await harness.passes()
    return await rows(harness)


CASES = [
    (["enough_pairs"], {}, "not used: 4 confident pairs, 50 needed"),
    (["enough_episodes"], {"episodes": 3}, "not used: 3 episodes, 5 needed"),
    (["accuracy_confident"], {"accuracy": 0.625}, "not used: accuracy 0.62, 0.70 needed"),
    (["accuracy_all"], {}, "not used: accuracy on all pairs 0.80"),
    (["beats_step_index"], {"baselines": {"step_index": 0.78}}, "accuracy 0.80 against 0.78 of the step index, 0.83"),
    (["beats_linear"], {"baselines": {}}, "not used: its lead over a linear model could not be measured"),
    (["shuffled_is_chance"], {"baselines": {"shuffled_labels": 0.7}}, "not used: accuracy 0.70 with shuffled labels"),
    (["calibrated"], {"calibration": Calibration(temperature=1, ece=0.31, brier=0.2)}, "error 0.31, 0.25 allowed"),
    (["spread"], {"spread": None}, "not used: spread of scores could not be measured"),
    (["quorum"], {"outcomes": {"judged": 2, "missing": 6}}, "not used: only 2 of 8 segments were judged"),
    (["a_gate_of_2030"], {}, "not used: it missed the gate a_gate_of_2030"),
    (["enough_pairs", "spread"], {"spread": 0.04}, "4 confident pairs, 50 needed; spread of scores 0.04, 0.10 needed"),
]


@pytest.mark.parametrize(("gates", "figures", "sentence"), CASES)
async def test_a_row_says_in_words_which_gates_failed(gates: list[str], figures: Any, sentence: str) -> None:
    accuracy = figures.pop("accuracy", 0.8)
    (row,) = await refused(
        accuracy=accuracy, gates=dict.fromkeys(gates, False) | {"calm": True}, thresholds=NEEDED, **figures
    )
    assert row.reason is not None
    assert sentence in row.reason
    assert "calm" not in row.reason


async def test_many_failed_gates_are_named_as_far_as_a_row_has_room() -> None:
    (row,) = await refused(gates={f"gate_{number}_of_a_later_version_with_a_long_name": False for number in range(20)})
    assert 800 < len(row.reason or "") <= 1_000


async def test_a_card_of_earlier_versions_names_no_threshold() -> None:
    (row,) = await refused(gates={"enough_pairs": False})
    assert row.reason == "not used: 4 confident pairs, too few"


async def test_an_epoch_says_which_refused_model_left_it_unshaped() -> None:
    first, second = await refused(2, gates={"enough_pairs": False}, thresholds=NEEDED)
    assert first.not_shaped == "not shaped: no reward model existed before epoch 0"
    assert second.not_shaped == "not shaped: the reward model of epoch 0 was not used: 4 confident pairs, 50 needed"


async def test_a_used_model_and_a_shaped_epoch_need_no_reason() -> None:
    first, second = await refused(2, passed=True)
    assert (first.reason, second.reason, second.not_shaped) == (None, None, None)


async def test_a_run_without_shaping_says_so() -> None:
    harness = await started_run(shaping={"mode": "none"})
    await harness.complete_epoch(0)
    (row,) = await rows(harness)
    assert row.not_shaped == "not shaped: the configuration sets shaping.mode to none"


async def test_a_model_that_came_too_late_is_named() -> None:
    harness = await trained_epoch(overlap=True)
    await harness.passes()
    await harness.judge(0)
    await harness.train_reward_model(0)
    await harness.train(1)
    row = (await rows(harness))[1]
    assert row.not_shaped == "not shaped: the reward model of epoch 0 was not ready"
