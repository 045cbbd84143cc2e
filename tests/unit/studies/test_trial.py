"""One small but complete trial, from start record to curve, with the code of the services on a directory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shared.contracts.run import RunConfig, SamplingConfig
from studies.plan import StudyPlan, load_curves, result_file
from studies.summary import MEASURE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RUN = RunConfig(
    world="garden",
    epochs=2,
    epoch_steps=2048,
    episode_length=300,
    segment_steps=100,
    frame_skip=12,
    env_runners=0,
    envs_per_runner=4,
    batch_size=1024,
    sampling=SamplingConfig(budget=12),
)


@pytest.mark.parametrize("arm", ["judges", "random"])
def test_a_trial_writes_a_curve_that_marks_shaped_epochs(arm: str, tmp_path: Path) -> None:
    plan = StudyPlan(arms=(arm,), seeds=1, run=RUN).save_or_extend(tmp_path)
    command = [sys.executable, "-m", "studies.trial", str(tmp_path), arm, "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    curve = load_curves(tmp_path, plan)[arm][0]
    assert [row["epoch"] for row in curve] == [0.0, 1.0]
    assert curve[1]["steps"] >= 2 * 2048
    assert all(0.0 <= row[MEASURE] <= 1.0 for row in curve)
    assert curve[0]["shaped"] == 0.0
    cards = list(tmp_path.glob("stores/*/models/runs/*/reward_model/epoch_0/*"))
    if arm == "random":
        assert curve[1]["shaped"] == 1.0
    else:
        card = json.loads(next(file for file in cards if file.name == "card.json").read_bytes())
        assert card["segments"] > 0
        assert curve[1]["shaped"] == float(card["gates_passed"])
    again = subprocess.run(command, capture_output=True, timeout=60)
    assert again.returncode == 0
    assert result_file(tmp_path, arm, 0).exists()
