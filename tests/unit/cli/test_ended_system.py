"""Runs are listed, shown, reported and exported from the store of a system that no longer runs."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cli import errors
from cli.commands.run import reasons
from cli.service_settings import reachable_store
from cli.stack.connections import local_store
from cli.stack.layout import Connection, StackLayout
from cli.stack.services import store_settings
from cli.stored_runs import list_stored_runs
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.store import keys
from shared.store.open import open_store
from shared.store.provision import provision
from tests.unit.cli.test_commands import ROOT, zelda

ARCHIVE = ROOT / "tests/data/run_of_2026_11_22.zip"
RUN = "demo-20261123-001156"


def leave_connection(directory: Path, settings: dict[str, str], *, killed: bool = False) -> StackLayout:
    """What an ended system leaves behind; a killed one also leaves its connection."""
    layout = StackLayout(directory / "runs/.local")
    ended = subprocess.Popen(["true"])
    ended.wait()
    connection = Connection("http://127.0.0.1:9", layout.secret("operator"), ended.pid, settings)
    for path in (layout.ended, *([layout.connection] if killed else [])):
        connection.save(path)
    return layout


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which a system with one finished run has ended."""
    directory = tmp_path_factory.mktemp("ended")
    shutil.unpack_archive(ARCHIVE, directory / "store")
    leave_connection(directory, {"ZELDA_STORE__URL": f"file://{directory / 'store'}"}, killed=True)
    return directory


def test_runs_are_listed_without_a_system(ended: Path) -> None:
    done = zelda("run", "list", cwd=ended)
    assert done.stdout.splitlines()[1] == f"{RUN}\tfinished\tbramble:garden\t1 of 1\t2026-11-23 00:11\t"
    assert done.stderr == "No system runs: this is what its store holds.\n"


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A directory in which a system with a readable run and a run `odd` with a damaged record has ended."""
    shutil.unpack_archive(ARCHIVE, tmp_path / "store")
    store = open_store(StoreSettings(url=f"file://{tmp_path / 'store'}"))
    for key in (keys.run_index(RunId("odd")), keys.run_revision(RunId("odd"), 0)):
        asyncio.run(store.put(key, b"{"))
    leave_connection(tmp_path, {"ZELDA_STORE__URL": f"file://{tmp_path / 'store'}"}, killed=True)
    return tmp_path


@pytest.mark.parametrize("output", [(), ("--json",)])
def test_a_run_that_cannot_be_read_is_named_beside_the_others(damaged: Path, output: tuple[str, ...]) -> None:
    done = zelda("run", "list", *output, cwd=damaged)
    assert (done.returncode, RUN in done.stdout) == (errors.FAILED, True)
    assert done.stderr.endswith("zelda: 1 run cannot be read, for the reasons logged above: odd.\n")


def test_no_run_is_invited_while_one_cannot_be_read(damaged: Path) -> None:
    done = zelda("run", "list", "--state", "failed", cwd=damaged)
    assert (done.returncode, "No run has this tag" in done.stderr) == (errors.FAILED, False)


@pytest.mark.parametrize("filter_", [("--tag", "other"), ("--state", "failed")])
def test_a_filter_without_a_match_does_not_say_that_no_run_exists(ended: Path, filter_: tuple[str, str]) -> None:
    done = zelda("run", "list", *filter_, cwd=ended)
    assert (done.returncode, len(done.stdout.splitlines())) == (errors.OK, 1)  # the names of the columns
    assert done.stderr.endswith("\nNo run has this tag or state: list all runs with `zelda run list`.\n")


def test_an_unknown_state_is_refused_without_a_system(ended: Path) -> None:
    done = zelda("run", "list", "--state", "nonsense", cwd=ended)
    assert (done.returncode, done.stdout) == (errors.USAGE, "")
    assert "'nonsense' is not one of" in done.stderr


def test_two_runs_are_compared_without_a_system(ended: Path) -> None:
    done = zelda("run", "diff", RUN, RUN, cwd=ended)
    assert done.returncode == errors.OK, done.stderr
    assert done.stderr.startswith("The runs are equal in ")


def test_a_run_is_judged_without_a_system(tmp_path: Path) -> None:
    shutil.unpack_archive(ARCHIVE, tmp_path / "store")
    leave_connection(tmp_path, {"ZELDA_STORE__URL": f"file://{tmp_path / 'store'}"}, killed=True)
    done = zelda("judge", "segments", RUN, "--rules", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (errors.OK, "judged 6, abstained 0, dead 0, already scored 0\n"), (
        done.stderr
    )


def test_a_run_is_shown_with_the_reasons_of_its_gates(ended: Path) -> None:
    done = zelda("run", "show", RUN, cwd=ended)
    assert done.stdout.startswith(f"{RUN} is finished.\n")
    assert "epoch 0: not shaped: no reward model existed before epoch 0\n" in done.stdout
    assert f"Next:  zelda report {RUN}\n" in done.stderr
    assert json.loads(zelda("run", "show", RUN, "--json", cwd=ended).stdout)["epochs"][0]["epoch"] == 0


def test_every_reason_of_an_epoch_becomes_a_line() -> None:
    row = {"epoch": 1, "reason": "not used: 28 confident pairs, 50 needed", "not_shaped": "not shaped: x", "alarm": "y"}
    assert reasons([row, {"epoch": 2}]) == [
        "epoch 1: its reward model is not used: 28 confident pairs, 50 needed",
        "epoch 1: not shaped: x",
        "epoch 1: alarm: y",
    ]


def test_a_report_is_written_without_a_system(ended: Path) -> None:
    done = zelda("report", RUN, "--out", "reports", cwd=ended)
    assert done.stdout == f"reports/{RUN}/report.html\n", done.stderr
    assert RUN in (ended / done.stdout.strip()).read_text()


def test_a_data_set_is_exported_without_a_system(ended: Path) -> None:
    assert zelda("export", "dataset", RUN, cwd=ended).stdout == "dataset.parquet: 1800 steps\n"


def test_a_wrong_rubric_lists_those_of_the_run(ended: Path) -> None:
    done = zelda("judge", "compare", RUN, "default", "strict", cwd=ended)
    assert done.returncode == errors.NOT_FOUND
    assert done.stderr.endswith("has no scores under rubric 'strict'; its rubrics: default.\n")


TYPO = RUN.replace("demo", "dmo")


@pytest.mark.parametrize(
    "words",
    [
        ("run", "show", TYPO),
        ("report", TYPO),
        ("trace", TYPO, "--epoch", "0"),
        ("policy", "export", TYPO),
        ("export", "segments", TYPO),
        ("export", "dataset", TYPO),
        ("export", "tensorboard", TYPO),
    ],
)
def test_an_unknown_run_gets_the_same_sentence_everywhere(ended: Path, words: tuple[str, ...]) -> None:
    done = zelda(*words, cwd=ended)
    sentence = f"zelda: There is no run {TYPO}: list the runs with `zelda run list`; did you mean {RUN}?\n"
    assert (done.returncode, done.stderr) == (errors.NOT_FOUND, sentence)


def test_the_store_server_runs_for_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    layout = StackLayout(tmp_path / "runs/.local")
    leave_connection(tmp_path, store_settings(layout, "s3://zelda", 9))
    with reachable_store():
        found = {name: value for name, value in os.environ.items() if name.startswith("ZELDA_STORE__")}
        settings = {name.removeprefix("ZELDA_STORE__").lower(): value for name, value in found.items()}
        provision(StoreSettings.model_validate(settings))
        store = local_store(found)
        for file in (path for path in unpacked(tmp_path).rglob("*") if path.is_file()):
            asyncio.run(store.put(str(file.relative_to(tmp_path / "unpacked")), file.read_bytes()))
    assert not [name for name in os.environ if name.startswith("ZELDA_STORE__")]
    assert [run["run"] for run in list_stored_runs(None)[0]] == [RUN]


def test_a_named_store_is_read_beside_a_damaged_connection_file(ended: Path, tmp_path: Path) -> None:
    damaged = StackLayout(tmp_path / "runs/.local").connection
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    done = zelda("run", "list", cwd=tmp_path, ZELDA_STORE__URL=f"file://{ended}/store")
    assert (done.returncode, RUN in done.stdout) == (errors.OK, True), done.stderr


@pytest.mark.parametrize(
    "words", ["run list", "policy export r1", "judge segments r1 --rules", "export segments r1", "report r1"]
)
def test_a_mistyped_store_is_named_and_stays_absent(words: str, tmp_path: Path) -> None:
    done = zelda(*words.split(), cwd=tmp_path, ZELDA_STORE__URL=f"file://{tmp_path}/stroe")
    assert (done.returncode, done.stdout) == (errors.NOT_FOUND, "")
    assert done.stderr.splitlines()[-1] == f"zelda: There is no store in {tmp_path}/stroe: check ZELDA_STORE__URL."
    assert not (tmp_path / "stroe").exists()


def unpacked(directory: Path) -> Path:
    """The small documents of the earlier run."""
    shutil.unpack_archive(ARCHIVE, directory / "unpacked")
    shutil.rmtree(directory / "unpacked/episodes")
    return directory / "unpacked"
