"""A guided trial asks the models of its planner file, or a rules server that lives as long as the trial."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from services.trainer.driver.session_factory import planner_file_of
from studies.arms import ARMS
from studies.asked_models import PLANNER_FILE, asked_models
from studies.plan import Trial
from studies.trial import trial_config
from tests.unit.studies.test_study import PLAN


def test_rules_server_lives_as_long_as_the_guided_trial() -> None:
    with asked_models(ARMS["guided"]) as driver:
        file = planner_file_of(trial_config(PLAN, Trial("guided", "garden", 1)), driver)
        assert file is not None
        url = file.routes["text"].url
        with urllib.request.urlopen(f"{url}/models", timeout=5) as answer:
            assert answer.status == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/models", timeout=5)


def test_variable_names_other_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "planner.yaml"
    route = "{url: 'http://models.test/v1', model: m}"
    path.write_text(f"routes: {{text: {route}, vision: {route}}}")
    monkeypatch.setenv(PLANNER_FILE, str(path))
    with asked_models(ARMS["guided"]) as driver:
        assert driver.planner_file == path
    with asked_models(ARMS["visits"]) as driver:
        assert driver.planner_file is None


def test_guided_arm_keeps_the_studys_values() -> None:
    run = PLAN.run.model_copy(update={"guidance": PLAN.run.guidance.model_copy(update={"text_share": 0.5})})
    plan = PLAN.model_copy(update={"run": run})
    guided = trial_config(plan, Trial("guided", "garden", 1)).guidance
    assert (guided.mode, guided.text_share) == ("model", 0.5)
    assert trial_config(plan, Trial("visits", "garden", 1)).guidance.mode == "none"
