"""Ablations of the method that finishes the vale: each variant can be trained, lacks what it says, is measured once."""

import json
import subprocess
from argparse import Namespace
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cli.commands.study import study_plan
from shared.contracts.run import RunConfig
from studies.ablations import __main__ as ablations
from studies.ablations.variants import VARIANTS
from studies.plan import Trial
from studies.report.ablations import NOT_MEASURED, VariantResults, ablations_block, results_file
from studies.trial import trial_config
from tests.unit.studies.invented import curve
from tests.unit.studies.test_results import opened


def config(name: str) -> RunConfig:
    """The configuration of a variant's runs, as `zelda study` reads its words."""
    variant = VARIANTS[name]
    values = {
        "epochs": 20,
        "epoch_steps": 81_920,
        "frame_skip": 4,
        "rewards": "sparse",
        "sampling": {"milestones": False, "budget": 60},
        "shaping": {"mode": "gain", "coefficient": 2.0, "conservatism": 0.0},
    }
    pairs = ["=".join(pair) for pair in variant.settings.items()]
    plan = study_plan(("vale",), 12_000, values, pairs, "gain", "311:312", variant.arm)
    return trial_config(plan, Trial(variant.arm, "vale", 311))


LACKS: dict[str, Callable[[RunConfig], bool]] = {
    "no-archive": lambda one: not one.keeps_archive and not one.restarts.explore,
    "no-restarts": lambda one: not one.restarts.share and one.imitation.of_archive and one.restarts.explore > 0,
    "no-imitation": lambda one: one.imitation.mode == "none" and one.restarts.backward,
    "no-recovery": lambda one: not one.imitation.recovery_share and one.imitation.of_archive,
    "no-window": lambda one: one.observation == "obs/v2" and one.imitation.of_archive,
    "buttons": lambda one: (one.options, one.imitation.mode, one.memory) == ("none", "none", "none"),
    "memory": lambda one: (one.options, one.imitation.mode, one.memory) == ("none", "none", "gru/v1"),
}


@pytest.mark.parametrize("name", LACKS)
def test_each_variant_is_a_valid_run_without_its_technique(name: str) -> None:
    assert LACKS[name](config(name))
    assert not LACKS[name](config("method"))


def test_no_variant_is_left_unchecked() -> None:
    assert set(VARIANTS) == {"method", *LACKS}


def train(folder: Path, commit: str, seeds: list[int]) -> None:
    """What the study of a variant leaves in its folder, with trials of this commit."""
    file, arm = folder / "result.json", VARIANTS[folder.name].arm
    results = opened(file)
    results.add({Trial(arm, "vale", seed): curve(0.0, 0.5) for seed in seeds}, commit, 2)
    results.save(file)


def evaluated(finished: int, milestones: float) -> dict[str, Any]:
    return {"episodes": 100, "finished": finished, "milestones_mean": milestones, "deaths": 3, "run": "some"}


def test_finished_seeds_are_neither_trained_nor_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **options: Any) -> "subprocess.CompletedProcess[bytes]":
        asked.append(command[3:])
        if command[3] == "study":
            train(tmp_path / "out" / "no-window", "abc", [311, 312])
        return subprocess.CompletedProcess(command, 0, json.dumps(evaluated(len(asked), 4.0)).encode())

    monkeypatch.setattr("studies.ablations.__main__.subprocess.run", run)
    given = Namespace(seeds="311:313", epochs=2, jobs=1, out=tmp_path / "out", results=tmp_path)
    for _ in range(2):
        assert ablations.measure(VARIANTS["no-window"], given) == 0
    assert [command[0] for command in asked] == ["study", "policy", "policy"]
    assert "observation=obs/v4" not in asked[0]
    found = VariantResults.load(results_file(tmp_path, "no-window"))
    assert {seed: one.finished for seed, one in found.seeds.items()} == {311: 2, 312: 3}
    assert (found.commit, found.cores, found.title) == ("abc", 2, VARIANTS["no-window"].title)


def test_a_later_seed_names_its_own_commit_and_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, seeds = "abc", [311]

    def run(command: list[str], **options: Any) -> "subprocess.CompletedProcess[bytes]":
        if command[3] == "study":
            train(tmp_path / "out" / "method", commit, seeds)
        return subprocess.CompletedProcess(command, 0, json.dumps(evaluated(1, 4.0)).encode())

    monkeypatch.setattr("studies.ablations.__main__.subprocess.run", run)
    given = Namespace(seeds="311:312", epochs=2, jobs=1, out=tmp_path / "out", results=tmp_path)
    assert ablations.measure(VARIANTS["method"], given) == 0
    file = results_file(tmp_path, "method")
    invented = {"date": date(2026, 1, 2), "steps": 2 * ablations.EPOCH_STEPS}
    first = VariantResults.load(file).model_copy(update=invented)
    assert first.seeds[311].commit == "abc"
    first.seeds[311] = first.seeds[311].model_copy(update={"commit": None})  # as older files say it
    first.save(file)
    commit, seeds, given.seeds = "def", [312, 313], "311:314"
    assert ablations.measure(VARIANTS["method"], given) == 0
    found = VariantResults.load(file)
    assert {seed: one.commit for seed, one in found.seeds.items()} == {311: "abc", 312: "def", 313: "def"}
    command = "python -m studies.ablations --seeds"
    assert found.command == f"{command} 311:312 --epochs 2; {command} 311:314 --epochs 2"
    assert (found.date, found.commit) == (date.today(), "def")
    assert ablations_block(tmp_path).startswith(f"`{found.command}` (2 cores, {date.today()}, ")


def test_policies_of_other_lengths_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head: dict[str, Any] = {"title": "the method", "command": "the command", "commit": "abc", "date": "2026-11-28"}
    head |= {"cores": 2, "steps": 2 * ablations.EPOCH_STEPS, "seeds": {311: evaluated(50, 4.0)}}
    VariantResults.model_validate(head).save(results_file(tmp_path, "method"))
    given = Namespace(seeds="312:313", epochs=3, jobs=1, out=tmp_path / "out", results=tmp_path)
    assert ablations.measure(VARIANTS["method"], given) == 2
    assert "use --epochs 2, or another --results" in capsys.readouterr().err
    assert VariantResults.load(results_file(tmp_path, "method")).seeds.keys() == {311}


def test_the_table_shows_each_trial_beside_the_mean(tmp_path: Path) -> None:
    assert ablations_block(tmp_path) == NOT_MEASURED
    for name, base, finished in (("no-window", 2.0, (0, 10)), ("method", 8.0, (80, 90))):
        seeds = {311 + place: evaluated(count, base + place) for place, count in enumerate(finished)}
        head: dict[str, Any] = {"title": VARIANTS[name].title, "command": "the command", "commit": "abc"}
        head |= {"date": "2026-11-28", "cores": 2, "steps": 10}
        VariantResults.model_validate({**head, "seeds": seeds}).save(results_file(tmp_path, name))
    lines = ablations_block(tmp_path).splitlines()
    assert lines[-2] == "| `method`: the method | 2 | 10 | 8.5 (8.0, 9.0) | 85 (80, 90) |"
    assert lines[-1].startswith("| `no-window`: without the window of tiles and the flags (obs/v2) | 2 | 10 |")


def test_an_unknown_variant_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ablations.main(["--variants", "method,no-luck", "--results", str(tmp_path)])
    assert "no variant is named no-luck" in capsys.readouterr().err
