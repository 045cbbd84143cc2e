"""Over-optimisation withdraws reward models after two diverging epochs, not after one."""

from datetime import UTC, datetime

import pytest

from services.coordinator.domain.over_optimisation import EpochEvidence, detect_over_optimisation, evidence_from
from services.coordinator.domain.reward_model_selection import TRUE_PROGRESS
from shared.contracts.card import EpochScore, PairAccuracy, RewardModelCard
from shared.store import keys
from tests.unit.coordinator.harness import RUN, Harness, started_run


def evidence(*rows: tuple[float, float]) -> list[EpochEvidence]:
    """Epochs 0, 1, ... with (score of the reward model, true progress)."""
    return [EpochEvidence(epoch, score, truth) for epoch, (score, truth) in enumerate(rows)]


def test_two_diverging_epochs_raise_an_alarm_and_name_the_suspects() -> None:
    result = detect_over_optimisation(evidence((-0.5, 1.0), (-0.2, 2.0), (0.0, 3.0), (0.3, 2.5), (0.6, 2.0)))
    assert result.alarm
    # Model 2 shaped epoch 3, where the decline began; model 4 was trained on the last epoch. Model 1 is the last good.
    assert result.suspects == {2, 3, 4}
    assert "From epoch 2 to 4" in result.reason
    assert "3.00 to 2.00" in result.reason


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(0.0, 1.0)],
        [(0.0, 3.0), (0.5, 2.0)],  # one epoch only
        [(0.0, 3.0), (0.5, 2.0), (1.0, 2.5)],  # true progress recovers
        [(0.0, 3.0), (-0.2, 2.0), (-0.4, 1.0)],  # both fall: the model is right
        [(0.0, 1.0), (0.5, 2.0), (1.0, 3.0)],  # both rise: the model is right
        [(0.0, 3.0), (0.5, 2.99), (1.0, 2.98)],  # falls within chance
        [(0.0, 3.0), (0.01, 2.0), (0.02, 1.0)],  # rises within re-estimation
        [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0)],  # nothing was reached that could be lost
        [(0.0, 10.0), (-0.1, 1.1), (0.2, 1.0), (0.5, 0.9)],  # falls little, beside the best progress so far
    ],
)
def test_no_alarm_without_two_diverging_epochs(rows: list[tuple[float, float]]) -> None:
    result = detect_over_optimisation(evidence(*rows))
    assert not result.alarm
    assert result.suspects == frozenset()
    assert result.reason == ""


def test_suspects_stay_suspect_after_a_recovery() -> None:
    result = detect_over_optimisation(evidence((0.0, 3.0), (0.3, 2.5), (0.6, 2.0), (0.4, 3.2), (0.7, 3.5)))
    assert not result.alarm
    assert result.suspects == {0, 1, 2}


def test_every_model_since_the_start_of_a_decline_is_suspect() -> None:
    result = detect_over_optimisation(evidence((0.0, 4.0), (0.1, 5.0), (0.3, 4.0), (0.6, 3.0), (0.9, 2.0)))
    assert result.suspects == {1, 2, 3, 4}


def test_patience_counts_epochs() -> None:
    rows = evidence((0.0, 4.0), (0.3, 3.0), (0.6, 2.0))
    assert detect_over_optimisation(rows, patience=2).alarm
    assert not detect_over_optimisation(rows, patience=3).alarm


def card(*rows: EpochScore) -> RewardModelCard:
    return RewardModelCard.model_validate(
        {
            "run": "demo",
            "epoch": 2,
            "observation": "obs/v1",
            "weights_key": "models/w",
            "weights_digest": "0" * 64,
            "data_digest": "0" * 64,
            "ensemble": 5,
            "segments": 3,
            "pairs_train": 1,
            "pairs_heldout": 1,
            "accuracy": PairAccuracy(),
            "gates_passed": True,
            "seconds": 1.0,
            "created": datetime(2026, 1, 1, tzinfo=UTC),
            "epochs": list(rows),
        }
    )


def test_true_progress_comes_from_the_trainer_or_the_judged_segments() -> None:
    rows = [
        EpochScore(epoch=1, segments=5, model_score=0.2, judge_score=0.5, milestones=2.0),
        EpochScore(epoch=0, segments=5, model_score=0.1, judge_score=0.4, milestones=1.0),
        EpochScore(epoch=2, segments=5, model_score=0.3, judge_score=0.5, milestones=None),
    ]
    assert evidence_from(card(*rows), {1: 7.0}) == [EpochEvidence(0, 0.1, 1.0), EpochEvidence(1, 0.2, 7.0)]


async def play_epoch(
    harness: Harness, number: int, truth: float, scores: tuple[float, ...], *, passed: bool = True
) -> None:
    """One epoch with this true progress, and its card with these scores of all epochs so far."""
    await harness.train(number, metrics={TRUE_PROGRESS: truth})
    await harness.judge(number)
    card = await harness.train_reward_model(number, passed=passed)
    rows = [EpochScore(epoch=n, segments=4, model_score=score, judge_score=0.5) for n, score in enumerate(scores)]
    await harness.store.put(keys.reward_model_card(RUN, number), card.model_copy(update={"epochs": rows}).to_bytes())
    await harness.passes()


async def test_a_model_that_failed_its_gates_clears_no_suspect() -> None:
    harness = await started_run(epochs=6)
    await play_epoch(harness, 0, 3.0, (0.0,))
    await play_epoch(harness, 1, 2.5, (0.0, 0.3))
    await play_epoch(harness, 2, 2.0, (0.0, 0.3, 0.6))
    assert (await harness.start_order(3)).reward_model is None  # all three are suspect
    await play_epoch(harness, 3, 2.0, (0.0, 0.0, 0.0, 0.0), passed=False)
    assert (await harness.start_order(4)).reward_model is None
    await play_epoch(harness, 4, 3.0, (0.0, 0.1, 0.1, 0.1, 0.2))
    model = (await harness.start_order(5)).reward_model
    assert model is not None
    assert model.epoch == 4
