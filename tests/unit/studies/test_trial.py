"""Small but complete trials, from start record to curve, with the code of the services on a directory."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from services.trainer.driver.epoch_runner import EpochRunner
from shared.contracts.epoch import EpochStart
from shared.contracts.run import RunConfig, SamplingConfig
from studies.judges.bank import Bank
from studies.labels.bank_store import bank_store, record_bank
from studies.labels.votes import ModelVotes
from studies.plan import LabelSettings, Trial
from studies.trial import main
from tests.unit.studies.invented import plan
from tests.unit.studies.small_bank import answer

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


TINY = RUN.model_copy(update={"epoch_steps": 512, "batch_size": 256, "episode_length": 300})


@pytest.mark.parametrize("arm", ["rules-noisy", "llm", "rules-bank", "llm-shuffled"])
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_trial_of_labels_says_how_right_they_are(
    arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    labels = LabelSettings(noisy_accuracy=0.8, noise=0.24)
    made = plan(arms=(arm,), seeds=(0,), run=TINY, episode_lengths=(300,), labels=labels).save_or_extend(tmp_path)
    if arm != "rules-noisy":
        record_a_few(tmp_path)
    monkeypatch.setattr("studies.trial.stop_ray", lambda: None)  # other tests go on with this Ray
    assert main([str(tmp_path), arm, "garden", "0"]) == 0
    found = made.load_curves(tmp_path)[Trial(arm, "garden", 0)]
    assert len(found.steps) == 2
    store = "stores/*" if arm == "rules-noisy" else "stores/bank"
    (card,) = tmp_path.glob(f"{store}/models/runs/{arm}-garden-0/reward_model/epoch_0/card.json")
    if arm == "rules-noisy":
        assert json.loads(card.read_bytes())["segments"] > 0
        return
    assert json.loads(card.read_bytes())["segments"] == 4
    assert found.label_accuracy is not None
    assert found.label_accuracy == 1.0 or arm != "llm"
    assert found.shaped == int(arm == "llm-shuffled")  # the gates refuse a model of four segments
    assert ("reward model refused" in "".join(capfd.readouterr())) is (arm != "llm-shuffled")


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_trial_that_was_killed_goes_on_after_its_finished_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial("judges", "garden", 0)
    made = plan(arms=("judges",), seeds=(0,), run=TINY, episode_lengths=(300,)).save_or_extend(tmp_path)
    monkeypatch.setattr("studies.trial.stop_ray", lambda: None)  # other tests go on with this Ray
    run = EpochRunner.run
    orders: list[int] = []

    def killed_in_the_second(runner: EpochRunner, order: EpochStart) -> None:
        orders.append(order.epoch)
        if orders == [0, 1]:
            raise KeyboardInterrupt
        run(runner, order)

    monkeypatch.setattr(EpochRunner, "run", killed_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        main([str(tmp_path), *map(str, (trial.arm, trial.world, trial.seed))])
    records = tmp_path / "stores" / trial.name / "models" / "runs" / trial.name / "epochs"
    ordered = (records / "epoch_1" / "start.json").read_bytes()
    assert not made.result_file(tmp_path, trial).exists()
    assert main([str(tmp_path), *map(str, (trial.arm, trial.world, trial.seed))]) == 0
    assert orders == [0, 1, 1]
    assert (records / "epoch_1" / "start.json").read_bytes() == ordered
    assert len(made.load_curves(tmp_path)[trial].steps) == 2
    assert not (records.parents[3] / "episodes").exists(), "the segments are removed, models and cards stay"
    assert main([str(tmp_path), *map(str, (trial.arm, trial.world, trial.seed))]) == 0
    assert orders == [0, 1, 1]


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_guided_trial_counts_its_suggestions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(arms=("guided",), seeds=(0,), run=RUN, episode_lengths=(300,)).save_or_extend(tmp_path)
    monkeypatch.setattr("studies.trial.stop_ray", lambda: None)  # other tests go on with this Ray
    assert main([str(tmp_path), "guided", "garden", "0"]) == 0
    found = made.load_curves(tmp_path)[Trial("guided", "garden", 0)]
    assert found.suggestions is not None
    assert sum(found.suggestions.values()) > 10
    assert not found.shaped


def record_a_few(folder: Path) -> None:
    """Label two idle and two good segments of the bank's shortest episodes in the garden."""
    bank = Bank.load()
    garden = [one for one in bank.half("dev") if bank.episodes[one.episode].world == "garden" and one.index == 0]
    short = sorted(garden, key=lambda one: len(bank.episodes[one.episode].actions))
    segments = [one for one in short if one.gain == 0][:2] + [one for one in short if one.gain > 1][:2]
    answers = {one.name: answer(one.name, [min(5, 2 * one.gain)] * 3) for one in segments}
    asyncio.run(record_bank(bank_store(folder), bank, ModelVotes({"garden": segments}, answers), lambda *_: None))
