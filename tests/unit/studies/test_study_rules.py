"""Rules of a study at their limits: what a curve counts, which seeds and labels are comparable, when a win counts."""

from typing import Any

import pytest

from shared.contracts.ids import Digest
from studies.curves import FINISHED, MEASURE, Curve
from studies.episode_length import FACTOR, STEP_FRAMES, WALKS, episode_length
from studies.options import MAX_SEEDS, parse_seeds
from studies.plan import InvalidStudy, LabelSettings
from studies.report.verdict import verdict


def test_every_shaped_epoch_counts_also_those_without_an_evaluation() -> None:
    rows = [
        {"steps": 10, "shaped": 1.0},
        {"steps": 20, "shaped": 1.0, MEASURE: 0.5},
        {"steps": 30, "shaped": 0.0, MEASURE: 1.0, FINISHED: 0.75},
    ]
    curve = Curve.of(rows)
    assert (curve.shaped, curve.steps) == (2, (20, 30))
    assert curve.finished == (0.0, 0.75), "an evaluation that says nothing of it finished nothing"


@pytest.mark.parametrize("world", WALKS)
@pytest.mark.parametrize("frame_skip", [4, 7, 12, 24])
def test_an_episode_is_never_shorter_than_the_factor_of_its_walk(world: str, frame_skip: int) -> None:
    steps = FACTOR * WALKS[world] * STEP_FRAMES / frame_skip
    assert steps <= episode_length(world, frame_skip) < steps + 100


def test_a_study_has_at_most_a_hundred_seeds_from_zero_on() -> None:
    assert parse_seeds(str(MAX_SEEDS)) == tuple(range(MAX_SEEDS))
    assert parse_seeds("0:2") == (0, 1)
    for wrong in (str(MAX_SEEDS + 1), "-1:2", "0"):
        with pytest.raises(InvalidStudy, match=f"--seeds {wrong}: name 1 to 100 seeds, none of them negative"):
            parse_seeds(wrong)


LABELS = LabelSettings(
    noisy_accuracy=0.8, noise=0.1, votes=Digest("1" * 64), source="here", advisers="rules", planner_file="a.yaml"
)


@pytest.mark.parametrize(
    ("other", "comparable"),
    [
        ({}, True),
        ({"noisy_accuracy": 0.7}, False),
        ({"noise": 0.2}, False),
        ({"votes": Digest("2" * 64)}, False),
        ({"advisers": "qwen"}, False),
        ({"votes": LABELS.votes, "source": "there", "planner_file": "b.yaml"}, True),
    ],
)
def test_trials_are_comparable_if_known_labels_and_advisers_agree(other: dict[str, Any], comparable: bool) -> None:
    settings = LabelSettings.model_validate(other)
    assert (LABELS.agrees(settings), settings.agrees(LABELS)) == (comparable, comparable)
    assert LABELS.agrees(LabelSettings().joined(LABELS))


def said_of(p: float, low: float, high: float, seeds: int = 10) -> str:
    """The verdict about judges that are better than `visits` with this p and interval."""
    row = {"improvement": 0.8, "low": low, "high": high, "p": p, "seeds": [seeds, seeds]}
    arms = {name: {"seeds": list(range(100, 100 + seeds))} for name in ("visits", "judges")}
    return "\n".join(verdict({"worlds": ["garden"], "arms": arms, "against": {"visits": row}}, 1_000))


def test_a_win_needs_both_a_small_p_and_an_interval_above_a_half() -> None:
    win, open_ = "Judges learn faster than", "No difference is shown"
    assert win in said_of(0.009, 0.51, 0.99)
    for p, low in ((0.01, 0.51), (0.009, 0.5)):
        said = said_of(p, low, 0.99)
        assert win not in said
        assert open_ in said


def test_ten_seeds_an_arm_are_enough_for_a_claim() -> None:
    few = "With few seeds an arm (`visits` 9, `judges` 9)"
    assert few in said_of(0.001, 0.6, 0.9, seeds=9)
    assert "With few seeds" not in said_of(0.001, 0.6, 0.9, seeds=10)
