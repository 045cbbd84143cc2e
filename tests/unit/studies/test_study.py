"""The plan of a study, its options and arms, and its page from invented curves."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bramble.solver.walkthrough import solve
from cli.__main__ import exit_code_of
from cli.errors import USAGE
from shared.contracts.run import RunConfig
from studies.arms import ARMS
from studies.curves import Curve
from studies.episode_length import WALKS, episode_length
from studies.options import parse_arms, parse_seeds
from studies.plan import InvalidStudy, StudyPlan, Trial
from studies.report.charts import band
from studies.report.page import markdown_to_html, render_page
from studies.report.tables import to_markdown
from studies.report.verdict import verdict
from studies.summary import summarise
from studies.trial import trial_config
from tests.unit.studies.invented import compared_arms, curve, plan, trials

PLAN = plan()


def test_scores_use_all_evaluations_or_the_last_three() -> None:
    found = curve(0.0, 0.25, 0.5, 1.0, 1.0, finished=(0.0, 0.0, 0.5, 0.9, 1.0))
    assert found.speed == pytest.approx(0.55)
    assert found.final == pytest.approx(2.5 / 3)
    assert found.finished_at_end == pytest.approx(0.8)
    assert found.finished_after == 4 * 4096
    assert curve(1.0, 1.0).finished_after is None


def test_epochs_without_evaluation_are_no_points_of_a_curve() -> None:
    row = {"evaluation/milestones_share_mean": 0.25, "evaluation/finished_mean": 0.0}
    found = Curve.of([{"steps": 10.0, "shaped": 0.0}, {"steps": 20.0, "shaped": 1.0, **row}])
    assert (found.steps, found.share, found.shaped) == ((20,), (0.25,), 1)


def test_judges_are_compared_with_every_other_finished_arm() -> None:
    result = summarise(compared_arms())
    assert list(result["arms"]) == ["rnd", "events", "judges"]
    assert result["arms"]["judges"]["finished_after"] == [3 * 4096] * 10
    assert set(result["against"]) == {"rnd", "events"}
    assert result["against"]["rnd"]["improvement"] == 1.0
    assert result["against"]["rnd"]["p"] == pytest.approx(1.08e-5)
    assert result["against"]["events"]["p"] == 1.0
    assert "never" in to_markdown(result)
    found = render_page(result, compared_arms(), 12_288, "zelda study <garden>")
    assert found.count("data:image/png;base64,") == 2
    assert "&lt;garden&gt;" in found
    assert markdown_to_html(to_markdown(result)).count("<table>") == 2


def test_the_verdict_names_wins_and_null_results() -> None:
    said = verdict(summarise(compared_arms()), 12_288)
    assert said[0].startswith("Judges learn faster than PPO with RND curiosity (`rnd`): 1.00 (1.00 to 1.00), p = 1e-5")
    assert said[1].startswith("No difference is shown between judges and PPO with visit counts and a hand-written")
    assert not any("development" in line for line in said)
    few = {Trial(trial.arm, trial.world, trial.seed - 100): one for trial, one in compared_arms(5).items()}
    said = verdict(summarise(few), 12_288)
    assert any("a claim needs 10" in line for line in said)
    assert any("Seeds 0 to 9 were used during development" in line for line in said)


def test_the_verdict_warns_of_few_seeds_in_any_compared_arm() -> None:
    full = compared_arms()
    short = {trial: one for trial, one in full.items() if trial.arm != "rnd" or trial.seed < 103}
    assert not any("a claim needs" in line for line in verdict(summarise(full), 12_288))
    said = verdict(summarise(short), 12_288)
    assert any(line.startswith("With few seeds an arm (`rnd` 3), intervals are too narrow") for line in said)
    early = {Trial(t.arm, t.world, t.seed - 100 if t.arm == "rnd" else t.seed): one for t, one in full.items()}
    assert any("Seeds 0 to 9 were used during development" in line for line in verdict(summarise(early), 12_288))


def test_the_verdict_admits_a_loss() -> None:
    better, worse = [curve(0.5 + seed / 100, 1.0) for seed in range(10)], [curve(0.0, 0.0)] * 10
    said = verdict(summarise({**trials("events", *better), **trials("judges", *worse)}), 8_192)
    assert said[0].startswith("Judges learn more slowly than PPO with visit counts and a hand-written profile")


def test_a_language_model_is_compared_with_its_controls() -> None:
    rising = [one.model_copy(update={"label_accuracy": 0.8}) for one in (curve(0.5 + n / 100, 1.0) for n in range(10))]
    flat = [curve(0.0, n / 100) for n in range(10)]
    curves = {**trials("llm", *rising), **trials("rules-bank", *flat), **trials("none", *flat)}
    result = summarise(curves)
    assert result["against"] == {}
    assert set(result["llm_against"]) == {"rules-bank"}
    assert result["arms"]["llm"]["label_accuracy"] == [0.8] * 10
    assert "| llm against | trials |" in to_markdown(result)
    said = verdict(result, 8_192)
    assert said[0].startswith("Agents with a language model's labels (`llm`) learn faster than PPO with visit counts,")
    assert said[1].endswith("order rightly, mean of trials: `llm` 0.80.")
    assert "these judges, and says nothing about other worlds, longer training or other language models." in said[3]
    assert "llm_against" not in summarise(compared_arms())


def test_several_worlds_are_strata() -> None:
    worlds = {
        **trials("judges", curve(0.2), curve(0.3), world="wild:1"),
        **trials("judges", curve(0.8), world="wild:2"),
    }
    others = {**trials("rnd", curve(0.0), curve(0.1), world="wild:1"), **trials("rnd", curve(0.7), world="wild:2")}
    result = summarise({**worlds, **others})
    assert result["arms"]["judges"]["worlds"] == ["wild:1", "wild:1", "wild:2"]
    # Pooled, 0.7 of the second world would beat 0.2 and 0.3 of the first.
    assert result["against"]["rnd"]["improvement"] == 1.0
    assert "stratum" in " ".join(verdict(result, 4_096))


def test_a_page_with_missing_trials_does_not_claim_equal_seeds() -> None:
    both = {**trials("none", curve(0.0, 0.25), curve(0.0, 0.0)), **trials("judges", curve(0.0, 0.5), curve(0.0, 0.5))}
    missing = {trial: one for trial, one in both.items() if trial != Trial("none", "garden", 100)}
    for found, said in ((both, True), (missing, False)):
        made = render_page(summarise(found), found, 8_192, "zelda study")
        assert ("same steps and seeds" in made) is said
        assert ("Some trials are not finished" in made) is not said


def test_arms_differ_only_in_what_their_titles_say() -> None:
    base = trial_config(PLAN, Trial("none", "garden", 4))
    for name, arm in ARMS.items():
        config = trial_config(PLAN, Trial(name, "garden", 4))
        changed = {field for field in RunConfig.model_fields if getattr(config, field) != getattr(base, field)}
        given = {
            "rewards": arm.rewards,
            "ppo": arm.view,
            "planner": arm.planner,
            "guidance": arm.guidance,
            "options": arm.options,
            "memory": arm.memory,
            "imitation": arm.imitation != "none",
            "restarts": arm.backward or arm.restarts != "none",
            "observation": arm.window,
        }
        own = {field for field, used in given.items() if used}
        assert changed <= {"rnd", "shaping", "sampling"} | own, name
    assert base.shaping.mode == "none"
    assert not base.rnd


def test_arms_change_what_their_titles_say() -> None:
    config = {name: trial_config(PLAN, Trial(name, "garden", 4)) for name in ARMS}
    assert (config["events"].rewards, config["judges"].rewards) == ("events", PLAN.run.rewards)
    assert config["rnd"].ppo.curiosity_view == "novelty/v1"
    assert config["visits"].ppo.curiosity_view == "cells/v1"
    assert (config["none"].rnd, config["visits"].rnd) == (False, True)
    assert config["planner"].planner.mode == "rules"
    assert config["guided"].guidance.mode == "model"
    for name in ("none", "visits", "llm", "rules-bank", "llm-shuffled"):  # no label is made of their own segments
        sampling = config[name].sampling
        assert (sampling.share, sampling.milestones, sampling.budget) == (0.0, False, 1), name
    assert config["judges"].sampling == PLAN.run.sampling
    assert {name for name, one in config.items() if one.shaping.mode == "none"} == {
        name for name, arm in ARMS.items() if arm.shaping == "none"
    }


def test_restarts_have_the_studys_share_or_a_half_of_the_episodes() -> None:
    given = PLAN.run.model_copy(update={"restarts": PLAN.run.restarts.model_copy(update={"share": 0.9})})
    for name in ("backward", "archive-random"):
        assert trial_config(PLAN, Trial(name, "garden", 4)).restarts.share == 0.5
        assert trial_config(plan(run=given), Trial(name, "garden", 4)).restarts.share == 0.9


def test_arms_that_learn_from_an_archive_are_trained_only_when_asked_for() -> None:
    usual = {name for name, arm in ARMS.items() if arm.in_default_study}
    assert {"visits", "judges", "sil", "awr"} <= usual
    assert not usual & {"archive-sil", "archive-judges", "window", "backward", "options", "planner", "guided"}
    imitation = trial_config(PLAN, Trial("archive-sil", "garden", 4)).imitation
    assert (imitation.mode, imitation.of_archive, imitation.of_judged) == ("sil", True, False)
    assert trial_config(PLAN, Trial("backward", "garden", 4)).restarts.backward
    for selection in ("novelty", "judges", "random"):
        restarts = trial_config(PLAN, Trial(f"archive-{selection}", "garden", 4)).restarts
        assert (restarts.share, restarts.mode, restarts.selection) == (0.5, "archive", selection)


def test_another_study_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    PLAN.save_or_extend(tmp_path)
    PLAN.save_or_extend(tmp_path)
    with pytest.raises(InvalidStudy, match=r"contains another study \(it differs in worlds\)"):
        plan(worlds=("vale",)).save_or_extend(tmp_path)
    assert StudyPlan.load(tmp_path) == PLAN


def test_a_later_arm_is_compared_with_finished_ones(tmp_path: Path) -> None:
    PLAN.save_or_extend(tmp_path)
    later = plan(arms=("oracle",), seeds=(0, 7))
    assert later.save_or_extend(tmp_path).trials() == [Trial("oracle", "garden", 0), Trial("oracle", "garden", 7)]
    kept = StudyPlan.load(tmp_path)
    assert (kept.arms, kept.seeds) == (("none", "judges", "oracle"), (0, 1, 7))


def test_a_folder_of_an_earlier_version_is_shown_but_not_continued(tmp_path: Path) -> None:
    run = PLAN.run.model_dump(mode="json", exclude={"actions", "ppo"})
    stored = {"arms": ["none", "judges"], "seeds": 2, "run": run, "pooling": "gain"}
    (tmp_path / "study.json").write_text(json.dumps(stored))
    row = {"evaluation/milestones_share_mean": 0.5, "evaluation/finished_mean": 0.0, "steps": 4096.0, "shaped": 0.0}
    (tmp_path / "trials").mkdir()
    for name in ("none-0", "judges-0", "judges-1"):
        (tmp_path / "trials" / f"{name}.json").write_text(json.dumps([row]))
    assert StudyPlan.load(tmp_path).run.actions == "actions/v1"
    assert exit_code_of(["study", "garden", "--show", "--out", str(tmp_path)]) == 0
    assert "No difference is shown" in (tmp_path / "page.html").read_text()
    with pytest.raises(InvalidStudy, match="study of an earlier version"):
        PLAN.save_or_extend(tmp_path)


def test_a_damaged_plan_is_named(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(InvalidStudy, match=r"study\.json is damaged"):
        StudyPlan.load(tmp_path)


def test_an_unknown_arm_is_named() -> None:
    with pytest.raises(InvalidStudy, match="unknown arm magic"):
        parse_arms("none,magic")


def test_a_repeated_arm_is_trained_once() -> None:
    assert parse_arms("judges, none,judges") == ("judges", "none")


def test_seeds_are_a_number_or_ranges() -> None:
    assert parse_seeds("3") == (0, 1, 2)
    assert parse_seeds("100:103") == (100, 101, 102)
    assert parse_seeds("314:316,311:312,315:317") == (311, 314, 315, 316)
    for wrong in ("0", "-1", "5:5", "a", "1:2:3", "0:101", "1,2", "1:3,", "0:60,100:141", "0:1,5:5", "0:1000000000000"):
        with pytest.raises(InvalidStudy, match="--seeds"):
            parse_seeds(wrong)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rewards", "magic"], "--rewards: Input should be 'default', 'events', 'explore', 'seeds' or 'sparse'"),
        (["--mode", "none"], "--mode none disables shaping in every arm"),
        (["-s", "ppo.discont=0.9"], "no such field"),
        (["-s", "ppo.discount=2"], "ppo.discount"),
        (["-s", "seed=1"], "--set world and --set seed"),
        (["-s", "rnd=false"], "choose arms by --arms"),
        (["-s", "guidance.mode=model"], "--set planner.mode and guidance.mode: the arms planner and guided set them"),
        (["--planner", "planner.yaml"], "--planner: no arm of this study asks models"),
        (["-s", "eval_interval=0"], "measures nothing"),
        (["-s", "shaping=5"], "--set shaping: has fields of its own: shaping.mode,"),
        (["-s", "planner=off"], "--set planner: has fields of its own: planner.mode,"),
        (["-s", "labels=x"], "--set labels: has fields of its own: labels.source"),
        (["-s", "starts=x"], "--set starts: Input should be a valid dictionary"),
        (["-s", "frame_skip=abc"], "--set frame_skip: Input should be a valid integer"),
        (["-s", "frame_skip=null"], "--set frame_skip: Input should be a valid integer"),
        (["-s", "frame_skip=0"], "--set frame_skip: Input should be greater than or equal to 1"),
        (["-s", "episode_length=null"], "--set episode_length: Input should be a valid integer"),
        (["--frame-skip", "0"], "Invalid value for '--frame-skip'"),
        (["--seeds", "x"], "--seeds x: write a number"),
    ],
)
def test_an_impossible_study_is_refused_and_leaves_no_plan(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["study", "garden", *options, "--out", str(tmp_path)]) == USAGE
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_world_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["study", "garden,moon", "--out", str(tmp_path)]) == USAGE
    assert "zelda: WORLD: choose garden, vale, realm or wild:NUMBER" in capsys.readouterr().err


def test_an_episode_is_as_long_as_its_world_needs() -> None:
    assert episode_length("garden", 12) == 400
    assert episode_length("vale", 12) == 2_300
    assert episode_length("realm", 12) == 22_300
    assert 600 <= episode_length("wild:102", 12) <= 800
    for world in ("garden", "vale"):  # the test of the realm's walk-through compares its number
        assert WALKS[world] == solve(world).steps


def test_curves_with_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        Curve(steps=(1, 2), share=(0.1,), finished=(0.0, 0.0))
    with pytest.raises(ValueError, match="differ in length"):
        Curve(steps=(1, 2), share=(0.1, 0.2), finished=(0.0, 0.0), most=(1,))


def test_the_steps_to_each_milestone_count_the_best_episode() -> None:
    fast, slow, none = (
        Curve(steps=(10, 20, 30), share=(0.0, 0.1, 0.2), finished=(0.0,) * 3, most=most)
        for most in ((1, 1, 3), (0, 2, 1), (0, 0, 0))
    )
    assert [fast.reached_after(milestones) for milestones in range(1, 5)] == [10, 30, 30, None]
    result = summarise({**trials("judges", fast, slow, none), **trials("rnd", slow, slow, fast), **trials("sil", none)})
    assert result["arms"]["judges"]["milestone_after"] == [[10, 20, None], [30, 20, None], [30, None, None]]
    rows = to_markdown(result).split("| milestones, first reached")[1].splitlines()
    assert rows[0].endswith("| `rnd` | `judges` | `sil` |")
    assert rows[2:5] == [
        "| 1 | 20 (10 to 20) | 20 (10 to never) | never |",
        "| 2 | 20 (20 to 30) | 30 (20 to never) | never |",
        "| 3 | 1 of 3 trials | 1 of 3 trials | never |",
    ]
    assert "first reached" not in to_markdown(summarise(trials("judges", curve(0.5))))


def test_one_seed_is_shown_as_one_seed_and_not_as_an_interval() -> None:
    result = summarise({**trials("judges", curve(0.5)), **trials("rnd", curve(0.25))})
    assert "| 0.500 (one seed) |" in to_markdown(result)
    assert "| `rnd` | 1 + 1 | 1.00 (one seed each), p = 1.00 |" in to_markdown(result)
    assert not re.search(r"\d to \d", to_markdown(result))
    worlds = {**trials("judges", curve(0.5), world="wild:1"), **trials("judges", curve(0.2), world="wild:2")}
    assert "(one seed)" in to_markdown(summarise(worlds))
    two = trials("judges", curve(0.5), curve(0.5))
    assert "0.500 (0.500 to 0.500)" in to_markdown(summarise(two))


def in_worlds(arm: str, *counts: int) -> dict[Trial, Curve]:
    """Trials of an arm that `judges` always beats: so many in each world."""
    found: dict[Trial, Curve] = {}
    for number, count in enumerate(counts):
        shares = [0.1 * number + seed / 100 + (0.5 if arm == "judges" else 0.0) for seed in range(count)]
        found |= trials(arm, *map(curve, shares), world=f"wild:{number}")
    return found


def test_one_seed_in_each_world_is_too_few_for_an_interval() -> None:
    few = "1.00 (one seed each in a world, too few for an interval), p = 0.50"
    result = summarise({**in_worlds("judges", 1, 1), **in_worlds("rnd", 1, 1)})
    assert f"| `rnd` | 2 + 2 | {few} |" in to_markdown(result)
    said = verdict(result, 4_096)
    assert any(line.endswith(f"(`rnd`): {few}.") for line in said)
    assert any(line.startswith("With few seeds an arm (`rnd` 2, `judges` 2)") for line in said)
    more = summarise({**in_worlds("judges", 2, 1), **in_worlds("rnd", 1, 1)})
    assert more["against"]["rnd"]["worlds"] == ["wild:0", "wild:1"]
    assert "| `rnd` | 3 + 2 | 1.00 (1.00 to 1.00), p = " in to_markdown(more)
    # Of the second world only the judges have a trial: it is not compared.
    apart = summarise({**in_worlds("judges", 1, 1), **in_worlds("rnd", 1)})
    assert "| `rnd` | 1 + 1 | 1.00 (one seed each), p = 1.00 |" in to_markdown(apart)
    assert "worlds" not in summarise(compared_arms())["against"]["rnd"]


def test_bands_resample_trials_within_their_world() -> None:
    low, high = band([np.array([[0.1, 0.2]]), np.array([[0.8, 0.9]])])  # each resample of one trial is that trial
    assert low == pytest.approx([0.45, 0.55])
    assert high == pytest.approx([0.45, 0.55])
    low, high = band([np.array([[0.1, 0.2], [0.8, 0.9]])])
    assert low == pytest.approx([0.1, 0.2])
    assert high == pytest.approx([0.8, 0.9])


def test_a_study_that_evaluates_no_epoch_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(run=PLAN.run.model_copy(update={"eval_interval": 3})).run.eval_interval == 3
    options = ["--epochs", "3", "-s", "eval_interval=4"]
    assert exit_code_of(["study", "garden", *options, "--out", str(tmp_path)]) == USAGE
    assert "eval_interval 4 evaluates none of 3 epochs: set 3 or less." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
