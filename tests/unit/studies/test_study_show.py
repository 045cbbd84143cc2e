"""`zelda study --show` compares only trials of the named study, and names a file that it cannot read."""

import json
import subprocess
from pathlib import Path

import pytest

from cli.__main__ import exit_code_of
from cli.errors import OK, USAGE
from cli.study.command import command
from studies.curves import FINISHED, MEASURE, Curve
from studies.plan import InvalidStudy, StudyPlan, Trial
from studies.results import Results
from tests.unit.studies.invented import RUN, curve, plan, trials

PLAN = plan()
ROWS = [{MEASURE: 0.5, FINISHED: 0.0, "steps": 4096.0, "shaped": 0.0}]
NONE = Trial("none", "garden", 0)


def folder_with(parent: Path, *finished: Trial) -> Path:
    """The folder of the study of the garden, with these finished trials."""
    folder = parent / "garden"
    PLAN.save_or_extend(folder)
    (folder / "trials").mkdir()
    for trial in finished:
        PLAN.result_file(folder, trial).write_text(json.dumps(ROWS))
    return folder


def results_with(parent: Path, of: StudyPlan, found: dict[Trial, Curve]) -> Path:
    """A results file of this plan, as another machine would leave it."""
    file = parent / "collected.json"
    results = Results.open(file, of, command(of), "abc", 2)
    results.add(found, "abc")
    results.save(file)
    return file


def shown(folder: Path, *more: str, world: str = "garden") -> int:
    return exit_code_of(["study", world, "--show", "--out", str(folder), *more])


def test_trials_of_a_results_file_join_those_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_with(tmp_path, NONE)
    file = results_with(tmp_path, PLAN, trials("judges", curve(0.25, 0.5), curve(0.5, 0.5)))
    assert shown(folder, "--results", str(file), "--json") == OK
    arms = json.loads(capsys.readouterr().out)["arms"]
    assert {name: arm["seeds"] for name, arm in arms.items()} == {"none": [0], "judges": [100, 101]}


def test_trials_of_other_settings_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_with(tmp_path, NONE)
    longer = plan(run=RUN.model_copy(update={"epochs": 24}))
    file = results_with(tmp_path, longer, trials("judges", curve(0.5, 1.0)))
    assert shown(folder, "--results", str(file)) == USAGE
    found = capsys.readouterr()
    assert found.err.startswith(f"zelda: {file} holds a study with another run.epochs: ")
    assert found.out == ""
    assert not (folder / "page.html").exists()


def test_a_study_of_other_worlds_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_with(tmp_path, NONE)
    said = f"zelda: {folder} contains a study of garden: write `zelda study garden`, or choose another folder.\n"
    for world in ("vale", "garden,vale"):
        assert shown(folder, world=world) == USAGE
        assert capsys.readouterr() == ("", said)
    assert shown(folder, world="grden") == USAGE
    assert "zelda: WORLD: choose garden, vale, realm or wild:NUMBER" in capsys.readouterr().err


def test_the_order_of_the_worlds_does_not_matter_to_a_comparison(tmp_path: Path) -> None:
    two = plan(worlds=("garden", "vale"), episode_lengths=(400, 2_300))
    two.save_or_extend(tmp_path)
    (tmp_path / "trials").mkdir()
    two.result_file(tmp_path, NONE).write_text(json.dumps(ROWS))
    assert shown(tmp_path, world="vale,garden") == OK


DAMAGED = ["", json.dumps(ROWS)[:60], "[]", "[1]", "{}", "5", '[{"steps": 1}]', json.dumps([{MEASURE: 0.5}])]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_trial_file_is_named(text: str, tmp_path: Path) -> None:
    folder = folder_with(tmp_path, NONE)
    PLAN.result_file(folder, NONE).write_text(text)
    with pytest.raises(InvalidStudy, match=r"none-garden-0\.json is damaged: delete it and repeat the command"):
        PLAN.load_curves(folder)


def test_a_trial_with_a_deleted_file_is_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[Trial] = []

    def start(folder: Path, trial: Trial) -> "subprocess.Popen[bytes]":
        started.append(trial)
        (folder / "trials").mkdir(exist_ok=True)
        StudyPlan.load(folder).result_file(folder, trial).write_text(json.dumps(ROWS))
        return subprocess.Popen(["true"], start_new_session=True)

    monkeypatch.setattr("cli.trial_processes._start", start)
    monkeypatch.setattr("cli.trial_processes.POLL_S", 0.01)
    asked = ["study", "garden", "--arms", "none", "--seeds", "1", "--out", str(tmp_path)]
    assert exit_code_of(asked) == OK
    file = tmp_path / "trials" / "none-garden-0.json"
    file.write_bytes(file.read_bytes()[:60])
    capsys.readouterr()
    for again in (asked, [*asked, "--show"]):
        assert exit_code_of(again) == USAGE
        assert capsys.readouterr().err.startswith(f"zelda: {file} is damaged: delete it and repeat the command ")
    file.unlink()
    assert exit_code_of(asked) == OK
    assert started == [NONE], "the results file has the trial"
    (tmp_path / "result.json").unlink()
    assert exit_code_of(asked) == OK
    assert started == [NONE, NONE]
