"""The statistics of a study against values computed by hand, and its page from invented curves."""

from pathlib import Path

import numpy as np
import pytest

from cli.__main__ import exit_code_of
from cli.errors import USAGE
from shared.contracts.run import RunConfig
from studies.arms import ARMS
from studies.page import markdown_to_html, render_page
from studies.plan import InvalidStudy, StudyPlan, parse_arms
from studies.stats import improvement, improvement_estimate, iqm, iqm_estimate
from studies.summary import MEASURE, summarise, to_markdown
from studies.trial import trial_config

PLAN = StudyPlan(arms=("none", "judges"), seeds=3, run=RunConfig(world="garden", epochs=2, epoch_steps=4096))


def curve(*values: float) -> list[dict[str, float]]:
    return [{MEASURE: value, "steps": 10.0 * (i + 1), "shaped": float(i > 0)} for i, value in enumerate(values)]


def test_the_interquartile_mean_trims_a_quarter_at_each_end() -> None:
    assert iqm(np.array([0.0, 1.0, 2.0, 100.0])) == 1.5
    assert iqm(np.array([5.0])) == 5.0
    # Of five values the middle one has weight 1, its neighbours have weight 0.75, the others 0.
    assert iqm(np.array([100.0, 1.0, 2.0, 3.0, -100.0])) == pytest.approx((0.75 * 1 + 2 + 0.75 * 3) / 2.5)


def test_the_probability_of_improvement_counts_ties_half() -> None:
    assert improvement(np.array([1.0, 2.0]), np.array([0.0, 2.0])) == (1 + 0 + 1 + 0.5) / 4


def test_intervals_contain_the_value_and_shrink_with_more_seeds() -> None:
    rng = np.random.default_rng(1)
    few, many = iqm_estimate(rng.normal(size=5)), iqm_estimate(rng.normal(size=100))
    assert few.low <= few.value <= few.high
    assert many.high - many.low < few.high - few.low
    sure = improvement_estimate(np.array([3.0, 4.0, 5.0]), np.array([0.0, 1.0]))
    assert (sure.value, sure.low, sure.high) == (1.0, 1.0, 1.0)


def test_judges_are_compared_with_every_other_finished_arm() -> None:
    result = summarise(PLAN, {"none": {0: curve(0, 0.25)}, "judges": {0: curve(0, 0.5), 1: curve(0.25, 0.5)}})
    assert result["seeds"] == {"none": 1, "judges": 2}
    assert result["arms"]["judges"]["final"]["iqm"] == 0.5
    assert [row["against"] for row in result["comparisons"]] == ["none", "none"]
    assert result["comparisons"][0]["probability_of_improvement"] == 1.0
    text = to_markdown(result)
    assert "| PPO alone | 1 |" in text
    found = render_page(result, {"none": {0: curve(0, 0.25)}}, "zelda study <garden>")
    assert "data:image/png;base64," in found
    assert "&lt;garden&gt;" in found
    assert markdown_to_html(text).count("<table>") == 2


def test_a_page_with_missing_trials_does_not_claim_equal_seeds() -> None:
    both = {"none": {0: curve(0, 0.25), 1: curve(0, 0)}, "judges": {0: curve(0, 0.5), 1: curve(0, 0.5)}}
    for found, said in ((both, True), ({**both, "none": {1: curve(0, 0)}}, False), ({**both, "none": {}}, False)):
        made = render_page(summarise(PLAN, found), found, "zelda study")
        assert ("same steps and seeds" in made) is said
        assert ("Some trials are not finished" in made) is not said


def test_arms_differ_only_in_the_additional_reward() -> None:
    base = trial_config(PLAN, ARMS["none"], 4)
    for name, arm in ARMS.items():
        config = trial_config(PLAN, arm, 4)
        changed = {field for field in RunConfig.model_fields if getattr(config, field) != getattr(base, field)}
        assert changed <= {"rnd", "shaping", "sampling"}, name
    assert base.shaping.mode == "none"
    assert not base.rnd


def test_another_study_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    PLAN.save_or_extend(tmp_path)
    PLAN.save_or_extend(tmp_path)
    other = StudyPlan(arms=("none",), seeds=3, run=RunConfig(world="vale"))
    with pytest.raises(InvalidStudy, match="contains another study"):
        other.save_or_extend(tmp_path)
    assert StudyPlan.load(tmp_path) == PLAN


def test_a_later_arm_is_compared_with_finished_ones(tmp_path: Path) -> None:
    PLAN.save_or_extend(tmp_path)
    later = PLAN.model_copy(update={"arms": ("oracle",), "seeds": 2})
    assert later.save_or_extend(tmp_path).trials() == [("oracle", 0), ("oracle", 1)]
    kept = StudyPlan.load(tmp_path)
    assert (kept.arms, kept.seeds) == (("none", "judges", "oracle"), 3)


def test_an_unknown_arm_is_named() -> None:
    with pytest.raises(InvalidStudy, match="unknown arm magic"):
        parse_arms("none,magic")


def test_an_unknown_reward_profile_is_named_and_leaves_no_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["study", "garden", "--rewards", "magic", "--out", str(tmp_path)]) == USAGE
    assert "--rewards: unknown profile 'magic'; choose from default, explore," in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_repeated_arm_is_trained_once() -> None:
    assert parse_arms("judges, none,judges") == ("judges", "none")
