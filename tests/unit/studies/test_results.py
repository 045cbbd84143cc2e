"""A results file collects trials from several machines, refuses others, and is the source of the tables in docs."""

import json
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cli.study.command import command, widen
from cli.trial_processes import run_trials
from studies.episode_length import episode_length
from studies.options import parse_seeds
from studies.plan import InvalidStudy, LabelSettings, StudyPlan, Trial
from studies.report.generate import PAGES, RESULTS, ROOT, draw_pictures, generated
from studies.results import Results
from studies.summary import summarise
from tests.unit.studies.invented import RUN, curve, plan, trials

PLAN = plan(seeds=(100, 101))


def opened(file: Path, of: StudyPlan = PLAN) -> Results:
    return Results.open(file, of, command(of), "abc", 2)


def test_trials_of_two_machines_come_together(tmp_path: Path) -> None:
    file = tmp_path / "results" / "garden.json"
    first = opened(file)
    first.add(trials("judges", curve(0.0, 0.5)), "abc")
    first.save(file)
    second = Results.open(file, PLAN, command(PLAN), "def", 2)
    second.add({**trials("judges", curve(0.0, 1.0), curve(0.5, 1.0)), **trials("none", curve(0.0, 0.0))}, "def")
    second.save(file)
    stored = json.loads(file.read_text())
    assert stored["arms"]["judges"]["speed"] == [0.25, 0.75]  # the first machine's trial stays
    assert [one["commit"] for one in stored["trials"]["judges"]] == ["abc", "def"]
    assert stored["against"]["none"]["improvement"] == 1.0
    assert (stored["steps"], stored["cores"]) == (3 * 4096, 2)
    assert opened(file).curves() == second.curves()
    assert [path.name for path in file.parent.iterdir()] == ["garden.json"]


def test_a_file_is_ordered_by_arm_world_and_seed_and_keeps_whole_curves(tmp_path: Path) -> None:
    file, two = tmp_path / "both.json", plan(worlds=("garden", "vale"), episode_lengths=(400, 2_300))
    results = opened(file, two)
    places = [("judges", "vale", 1), ("judges", "garden", 10), ("judges", "garden", 9), ("none", "garden", 9)]
    shares = [0.1 * place for place in range(8)]
    found = {Trial(*place): curve(*shares, 0.01 * number) for number, place in enumerate(places)}
    results.add(found, "abc")
    results.save(file)
    again = Results.load(file)
    assert list(again.trials) == ["none", "judges"]
    order = [(one.world, one.seed) for one in again.trials["judges"]]
    assert order == [("garden", 9), ("garden", 10), ("vale", 1)]
    assert again.curves() == found


def test_a_file_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "garden.json"
    opened(file).save(file)
    earlier = Results.load(file)
    earlier.settings["format"] = 1
    earlier.save(file)
    with pytest.raises(InvalidStudy, match="holds a study of an earlier version: choose another file"):
        opened(file)


def test_a_file_keeps_the_newest_command(tmp_path: Path) -> None:
    file = tmp_path / "garden.json"
    opened(file).save(file)
    assert Results.open(file, PLAN, "another command", "abc", 2).command == "another command"


def test_a_trial_in_the_results_file_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[Trial] = []
    finished: list[Trial] = []

    def start(_: Path, trial: Trial) -> "subprocess.Popen[bytes]":
        started.append(trial)
        return subprocess.Popen(["true"], start_new_session=True)

    monkeypatch.setattr("cli.trial_processes._start", start)
    monkeypatch.setattr("cli.trial_processes.POLL_S", 0.01)
    run_trials(tmp_path, PLAN, 1, done=PLAN.trials())
    assert started == []
    assert capsys.readouterr().err == ""
    run_trials(tmp_path, PLAN, 1, PLAN.trials()[1:], finished.append)
    assert started == finished == PLAN.trials()[:1]
    (name,) = [trial.name for trial in started]
    said = [f"Training 1 trials, 1 at a time; each writes to {tmp_path / 'logs'}.", f"{name}: started"]
    assert capsys.readouterr().err.splitlines() == [*said, f"{name}: done; 0 left"]


def test_date_commit_and_cores_are_those_of_the_newest_trials(tmp_path: Path) -> None:
    file = tmp_path / "garden.json"
    first = opened(file)
    first.add(trials("judges", curve(0.0, 0.5)), "abc", 2)
    first.date = date(2026, 1, 2)
    first.save(file)
    again = Results.open(file, PLAN, command(PLAN), "def", 16)
    again.add(trials("judges", curve(0.0, 0.5)), "def", 16)
    assert (again.date, again.commit, again.cores) == (date(2026, 1, 2), "abc", 2)
    again.add(trials("none", curve(0.0, 0.0)), "def", 16)
    assert (again.date, again.commit, again.cores) == (date.today(), "def", 16)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": RUN.model_copy(update={"ppo": RUN.ppo.model_copy(update={"discount": 0.9})})}, "run.ppo.discount"),
        ({"worlds": ("vale",)}, "worlds"),
        ({"episode_lengths": (500,)}, "episode_lengths"),
        ({"pooling": "mean"}, "pooling"),
    ],
)
def test_trials_of_another_configuration_are_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    file = tmp_path / "garden.json"
    opened(file).save(file)
    before = file.read_bytes()
    with pytest.raises(InvalidStudy, match=f"holds a study with another {said}:"):
        opened(file, plan(**changes))
    assert file.read_bytes() == before
    opened(file, plan(arms=("oracle",), seeds=(7,)))  # other arms and seeds belong to the same study


@pytest.mark.parametrize("text", ["", "[]", '{"command": 1}', '{"trials": {"judges": [{"seed": 1}]}}'])
def test_a_damaged_results_file_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "garden.json"
    file.write_text(text)
    with pytest.raises(InvalidStudy, match="is not a results file"):
        opened(file)


@pytest.mark.parametrize("settings", [{}, {"run": {"epoch_steps": "x", "epochs": 2}}])
def test_damaged_settings_are_refused_before_a_figure_is_read(settings: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "garden.json"
    opened(file).save(file)
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "settings": settings}))
    with pytest.raises(InvalidStudy, match="is not a results file: settings"):
        Results.load(file)


def test_trials_of_an_unknown_arm_are_refused_and_not_dropped(tmp_path: Path) -> None:
    file = tmp_path / "garden.json"
    made = opened(file)
    made.add({Trial("judges", "garden", 100): curve(0.0, 0.5)}, "abc")
    made.save(file)
    stored = json.loads(file.read_bytes())
    stored["trials"]["of-another-branch"] = stored["trials"].pop("judges")
    file.write_text(json.dumps(stored))
    with pytest.raises(InvalidStudy, match="trials of the arm 'of-another-branch', which this version does not have"):
        Results.load(file)


def test_the_command_repeats_all_that_differs_from_a_usual_study() -> None:
    run = RUN.model_copy(update={"ppo": RUN.ppo.model_copy(update={"discount": 0.998}), "envs_per_runner": 16})
    run = run.model_copy(update={"env_runners": 0, "batch_size": 2_048, "segment_steps": 100})
    sampling = run.sampling.model_copy(update={"milestones": False})
    said = command(plan(run=run.model_copy(update={"sampling": sampling}), seeds=(100, 101)))
    assert said.startswith("zelda study garden --seeds 100:102 --arms none,judges --epochs 3 --epoch-steps 4096")
    assert said.endswith("--pooling gain -s ppo.discount=0.998")


def test_the_command_names_a_length_that_is_not_the_walk_throughs() -> None:
    usual = episode_length("garden", RUN.frame_skip)
    assert "--episode-length" not in command(plan(episode_lengths=(usual,)))
    assert " --frame-skip 4 --episode-length 500 --rewards " in command(plan(episode_lengths=(500,)))


@pytest.mark.parametrize("seeds", ["3", "0:1,2:3", "100:102", "100:101,103:105,107:108"])
def test_the_command_names_the_seeds_as_they_are_asked_for(seeds: str) -> None:
    assert f" --seeds {seeds} " in command(plan(seeds=parse_seeds(seeds)))


def test_the_command_of_a_file_names_the_trials_of_earlier_commands() -> None:
    earlier = [Trial("visits", "garden", 98), Trial("judges", "garden", 98)]
    labels = LabelSettings(noisy_accuracy=0.8, noise=0.24, source="runs/bench/one")
    said = command(widen(PLAN, earlier, labels))
    assert said.startswith("zelda study garden --seeds 98:99,100:102 --arms none,visits,judges")
    assert "--pooling gain --noisy-accuracy 0.8 --labels runs/bench/one" in said


def test_a_page_gets_the_tables_of_its_results(tmp_path: Path) -> None:
    file = tmp_path / "tiny.json"
    results = opened(file)
    results.add({**trials("judges", curve(0.0, 1.0)), **trials("none", curve(0.0, 0.0))}, "abc")
    results.save(file)
    page = "before\n<!-- study tiny -->\nSTALE\n<!-- end of study tiny -->\nafter\n"
    page += "<!-- claim tiny -->\nSTALE\n<!-- end of claim tiny -->\n"
    made = generated(page, tmp_path)
    assert made.startswith("before\n<!-- study tiny -->\n`zelda study garden")
    assert "| `judges`: PPO with visit counts" in made
    assert "STALE" not in made
    assert "(images/study-tiny.png)" in made
    assert "0 of 1 trials with a reward model of the judges' votes finish" in made.replace("\n", " ")
    draw_pictures(made, tmp_path, tmp_path)
    assert (tmp_path / "study-tiny.png").read_bytes().startswith(b"\x89PNG")
    assert generated(made, tmp_path) == made
    with pytest.raises(InvalidStudy, match="is not readable"):
        generated(page.replace("tiny", "other"), tmp_path)


def test_the_tables_in_docs_are_current() -> None:
    for name in PAGES:
        page = (ROOT / name).read_text("utf-8")
        assert generated(page, ROOT / RESULTS) == page, "run `python -m studies.report.generate`"


def test_the_committed_numbers_follow_from_the_committed_curves() -> None:
    for file in sorted((ROOT / RESULTS).glob("*.json")):
        stored = json.loads(file.read_text("utf-8"))
        if "trials" not in stored:  # of a benchmark, not of a study
            continue
        fresh = json.loads(json.dumps(summarise(Results.load(file).curves())))
        assert {key: stored[key] for key in fresh} == fresh, file.name
