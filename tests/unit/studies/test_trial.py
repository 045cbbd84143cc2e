"""One small but complete trial, from start record to curve, with the code of the services on a directory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shared.contracts.run import RunConfig, SamplingConfig
from studies.plan import Trial
from tests.unit.studies.invented import plan

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
    sampling=SamplingConfig(budget=12, milestones=False),
)


def test_a_trial_writes_a_curve_that_marks_shaped_epochs(tmp_path: Path) -> None:
    made = plan(arms=("judges",), seeds=(0,), run=RUN, episode_lengths=(300,)).save_or_extend(tmp_path)
    command = [sys.executable, "-m", "studies.trial", str(tmp_path), "judges", "garden", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    found = made.load_curves(tmp_path)[Trial("judges", "garden", 0)]
    assert len(found.steps) == 2
    assert found.steps[1] >= 2 * 2048
    assert all(0.0 <= share <= 1.0 for share in found.share)
    card = json.loads(next(tmp_path.glob("stores/*/models/runs/*/reward_model/epoch_0/card.json")).read_bytes())
    assert card["segments"] > 0
    assert found.shaped == int(card["gates_passed"])
    again = subprocess.run(command, capture_output=True, timeout=60)
    assert again.returncode == 0
    assert made.result_file(tmp_path, Trial("judges", "garden", 0)).exists()
