"""A guided trial asks the models of its planner file, or a rules server that lives as long as the trial."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from cli.study.advisers import with_advisers
from cli.study.command import command
from services.trainer.driver.session_factory import planner_file_of
from shared.contracts.driver import SUGGESTION_OUTCOMES
from studies.arms import ARMS
from studies.asked_models import asked_models
from studies.curves import MEASURE, Curve
from studies.plan import InvalidStudy, LabelSettings, Trial
from studies.report.tables import to_markdown
from studies.report.verdict import verdict
from studies.results import Results
from studies.summary import summarise
from studies.trial import trial_config
from tests.unit.studies.invented import curve, plan, trials
from tests.unit.studies.test_study import PLAN


def test_rules_server_lives_as_long_as_the_guided_trial() -> None:
    with asked_models(ARMS["guided"], None) as driver:
        file = planner_file_of(trial_config(PLAN, Trial("guided", "garden", 1)), driver)
        assert file is not None
        url = file.routes["text"].url
        with urllib.request.urlopen(f"{url}/models", timeout=5) as answer:
            assert answer.status == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/models", timeout=5)


def test_planner_file_names_other_models(tmp_path: Path) -> None:
    path = tmp_path / "planner.yaml"
    route = "{url: 'http://models.test/v1', model: m}"
    path.write_text(f"routes: {{text: {route}, vision: {route}}}")
    with asked_models(ARMS["guided"], str(path)) as driver:
        assert driver.planner_file == path
    with asked_models(ARMS["visits"], str(path)) as driver:
        assert driver.planner_file is None


def planner_file(folder: Path, *modes: str) -> Path:
    path = folder / "models.yaml"
    lines = [f"  {mode}: {{url: 'http://models.test/v1', model: small-{mode}}}" for mode in modes]
    path.write_text("\n".join(["routes:", *lines]))
    return path


def test_plan_names_its_advisers_and_how_to_ask_them_again(tmp_path: Path) -> None:
    guided = plan(arms=("visits", "guided"))
    assert with_advisers(guided, None).labels == LabelSettings(advisers="rules")
    file = planner_file(tmp_path, "text", "vision", "dialog")
    named = with_advisers(guided, file)
    assert named.labels.advisers == "text: small-text, vision: small-vision"
    assert f" --planner {file}" in command(named)
    assert with_advisers(plan(), None) == plan(), "no arm asks"


@pytest.mark.parametrize(
    ("arms", "modes", "said"),
    [
        (("visits",), ("text", "vision"), "--planner: no arm of this study asks models"),
        (("guided",), ("text",), "asks models about vision, and the planner file has no such route"),
        (("guided",), ("speech",), r"--planner: .*models.yaml"),
    ],
)
def test_unusable_planner_file_is_refused(
    arms: tuple[str, ...], modes: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidStudy, match=said):
        with_advisers(plan(arms=arms), planner_file(tmp_path, *modes))


def test_results_of_other_advisers_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "guided.json"
    rules = with_advisers(plan(arms=("guided",)), None)
    Results.open(file, rules, command(rules), "abc", 2).save(file)
    model = with_advisers(plan(arms=("guided",)), planner_file(tmp_path, "text", "vision"))
    with pytest.raises(InvalidStudy, match="holds trials with other labels or advisers"):
        Results.open(file, model, command(model), "abc", 2)
    rules.save_or_extend(tmp_path / "folder")
    with pytest.raises(InvalidStudy, match="contains another study"):
        model.save_or_extend(tmp_path / "folder")


def test_guided_arm_is_compared_with_the_arm_it_differs_from() -> None:
    counts = dict.fromkeys(SUGGESTION_OUTCOMES, 2)
    advised = [one.model_copy(update={"suggestions": counts}) for one in (curve(0.5), curve(0.6))]
    summary = summarise({**trials("visits", curve(0.0), curve(0.1)), **trials("guided", *advised)})
    assert summary["assisted_against"]["guided"]["visits"]["improvement"] == 1.0
    assert summary["arms"]["guided"]["suggestions"]["taken"] == [2, 2]
    assert "| guided against | trials |" in to_markdown(summary)
    said = verdict(summary, 100)
    assert said[0].startswith("No difference is shown between `guided` and PPO with visit counts (`visits`): 1.00")
    assert "Suggestions to `guided` over all trials: taken 4, not taken 4, stale 4" in said[1]
    assert not any("judge" in sentence for sentence in said)


def test_suggestions_of_all_epochs_are_summed() -> None:
    rows = [
        {
            MEASURE: 0.0,
            "steps": 10 * epoch,
            "shaped": 0.0,
            **{f"suggestions/{name}": 3.0 for name in SUGGESTION_OUTCOMES},
        }
        for epoch in (1, 2)
    ]
    assert Curve.of(rows).suggestions == dict.fromkeys(SUGGESTION_OUTCOMES, 6)
    assert Curve.of([{MEASURE: 0.0, "steps": 10, "shaped": 0.0}]).suggestions is None


def test_guided_arm_keeps_the_studys_values() -> None:
    run = PLAN.run.model_copy(update={"guidance": PLAN.run.guidance.model_copy(update={"text_share": 0.5})})
    plan = PLAN.model_copy(update={"run": run})
    guided = trial_config(plan, Trial("guided", "garden", 1)).guidance
    assert (guided.mode, guided.text_share) == ("model", 0.5)
    assert trial_config(plan, Trial("visits", "garden", 1)).guidance.mode == "none"
