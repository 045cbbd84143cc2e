"""The single commands of README.md judge an epoch and train its reward model, and never train without scores."""

import re
import shutil
from pathlib import Path

import pytest

from cli.__main__ import exit_code_of
from cli.errors import NOT_FOUND, OK
from shared.contracts.card import RewardModelCard
from shared.contracts.ids import RunId
from shared.store import keys
from tests.unit.cli.test_commands import ROOT
from tests.unit.cli.test_ended_system import ARCHIVE, RUN

TRAIN = ["rewardmodel", "train", RUN, "--epoch", "0"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one recorded epoch, without scores and without a reward model."""
    shutil.unpack_archive(ARCHIVE, tmp_path)
    shutil.rmtree(tmp_path / keys.scores_prefix(RunId(RUN), 0))
    shutil.rmtree(tmp_path / keys.reward_model_prefix(RunId(RUN), 0))
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}")
    monkeypatch.setenv("ZELDA_REWARDMODEL__VIEW", "obs/v1")  # the epoch was recorded before there were counters
    monkeypatch.setenv("ZELDA_REWARDMODEL__STEPS", "10")
    monkeypatch.setenv("ZELDA_REWARDMODEL__SHUFFLES", "1")
    return tmp_path


def test_nothing_is_committed_without_scores(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["judge", "segments", RUN, "--rules"]) == OK
    assert exit_code_of(TRAIN) == NOT_FOUND
    assert capsys.readouterr().err.endswith(
        f"zelda: {RUN} has no scores under rubric 'default' up to epoch 0 (rubrics with scores: rules): judge it with "
        f"`zelda judge segments {RUN} --rubric default` (without a model: --rules), and try again.\n"
    )
    assert not (store / keys.reward_model_card(RunId(RUN), 0)).exists()


def test_an_epoch_that_is_not_finished_is_named(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*TRAIN[:-1], "9"]) == NOT_FOUND
    said = f"zelda: {RUN} has no finished epoch 9: check the run with `zelda run show {RUN}`.\n"
    assert capsys.readouterr().err.endswith(said)


def test_the_documented_commands_train_on_every_segment(store: Path) -> None:
    readme = (ROOT / "cli/README.md").read_text()
    (judge,) = re.findall(r"zelda (judge segments NAME [^`]*)`", readme)
    assert exit_code_of(judge.replace("NAME", RUN).split()) == OK
    assert exit_code_of(TRAIN) == OK
    card = RewardModelCard.from_bytes((store / keys.reward_model_card(RunId(RUN), 0)).read_bytes())
    assert card.segments == 6
