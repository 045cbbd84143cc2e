"""The figures of a run reach TensorBoard, MLflow and W&B, completely and once.

The packages are imported where a test uses them: together they take seconds, also in a run that selects other tests.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from cli.__main__ import as_cli_error, exit_code_of
from cli.errors import FAILED, NOT_FOUND, OK, USAGE
from cli.exports import trackers
from services.exporter.adapters.trackers import MLFLOW_RETRIES, TensorBoardTracker, WandbTracker, flat_config
from services.exporter.domain.scalars import epoch_scalars
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow, RunSummary
from shared.store import keys
from shared.store.open import open_store
from tests.servers import free_ports
from tests.unit.cli.test_ended_system import ARCHIVE, RUN


@pytest.fixture
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSummary:
    """The summary of an earlier run with one epoch, in the store that `zelda` is configured to use."""
    shutil.unpack_archive(ARCHIVE, tmp_path / "store")
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}/store")
    store = open_store(StoreSettings(url=f"file://{tmp_path}/store"))
    return RunSummary.from_bytes(asyncio.run(store.get(keys.run_summary(RunId(RUN)))))


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard's own reader finds: (step, value) by name."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_tensorboards_own_reader_finds_every_figure(
    summary: RunSummary, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # a second export replaces the first
        assert exit_code_of(["export", "tensorboard", RUN, "--to", str(tmp_path / "tb")]) == OK
    found = read(tmp_path / "tb" / RUN)
    expected = epoch_scalars(summary.epochs[0])
    assert {tag: values for tag, values in found.items() if len(values) != 1} == {}
    assert {tag: values[0][1] for tag, values in found.items()} == pytest.approx(expected, rel=1e-6)
    assert {values[0][0] for values in found.values()} == {summary.epochs[0].steps}
    assert len(expected) > 60
    assert {"train/return_mean", "evaluation/milestones_mean", "judging/agreement", "epoch/score_mean"} <= set(expected)
    assert "tensorboard --logdir" in capsys.readouterr().out


def test_following_a_run_writes_each_figure_once_and_ends_with_it(
    summary: RunSummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trackers, "POLL_S", 0.0)
    done = summary.epochs[0]
    waiting = done.model_copy(update={"segments_waiting": 2, "reward_model_passed": None, "score_mean": None})
    second = done.model_copy(update={"epoch": 1})
    looks = [
        summary.model_copy(update={"state": state, "epochs": rows})
        for state, rows in (
            ("running", [waiting]),
            ("running", [waiting]),
            ("running", [done]),
            ("finished", [done, second]),
        )
    ]
    first, *rest = looks
    tracker = TensorBoardTracker(tmp_path, flat_config(summary.config.model_dump(mode="json")))
    trackers.feed(tracker, first, lambda: rest.pop(0), follow=True)
    tracker.close()
    found = read(tmp_path)
    assert rest == []
    assert [step for step, _ in found["train/return_mean"]] == [done.steps, 2 * done.steps]
    assert [step for step, _ in found["epoch/score_mean"]] == [done.steps, 2 * done.steps]
    assert found["epoch/segments_waiting"][0][1] == 0  # not the figure of an unfinished judging


def test_the_progress_counts_epochs_of_which_something_is_written(
    summary: RunSummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(trackers, "POLL_S", 0.0)
    monkeypatch.setattr(trackers, "overwrite_line", said.append)
    monkeypatch.setattr(trackers, "is_final", lambda name, row, newest, judged: row.epoch == 0)
    second = summary.epochs[0].model_copy(update={"epoch": 1})
    running = summary.model_copy(update={"state": "running", "epochs": [summary.epochs[0], second]})
    tracker = TensorBoardTracker(tmp_path, {})
    trackers.feed(tracker, running, lambda: summary, follow=True)
    tracker.close()
    assert said == ["1 epochs written; waiting for the next one; ctrl-C ends."]


def following(summary: RunSummary, rows: list[EpochRow], folder: Path, **config: object) -> dict[str, set[int]]:
    """Names of the figures that were written while the run went on, with the number of their epochs."""
    running = summary.model_copy(
        update={"state": "running", "epochs": rows, "config": summary.config.model_copy(update=config)}
    )
    written: dict[int, set[str]] = {}
    tracker = TensorBoardTracker(folder, {})
    trackers._write_new(tracker, running, written, everything=False)
    tracker.close()
    return {name: {epoch for epoch, names in written.items() if name in names} for name in written[0]}


def rows_of(done: EpochRow, number: int, **changes: object) -> list[EpochRow]:
    """This row as those of several epochs."""
    return [done.model_copy(update={"epoch": epoch, **changes}) for epoch in range(number)]


def test_figures_of_epochs_between_judged_ones_are_written_at_once(summary: RunSummary, tmp_path: Path) -> None:
    judged, *others = rows_of(summary.epochs[0], 3)
    unjudged = [row.model_copy(update={"reward_model_passed": None, "judging": None}) for row in others]
    found = following(summary, [judged, *unjudged], tmp_path, judge_interval=3)
    assert found["epoch/seconds"] == {0, 1, 2}


def test_figures_of_an_epoch_without_a_model_are_written_two_epochs_later(summary: RunSummary, tmp_path: Path) -> None:
    rows = rows_of(summary.epochs[0], 3, reward_model_passed=None, segments_waiting=1)
    found = following(summary, rows, tmp_path)
    assert (found["epoch/seconds"], found["judging/agreement"]) == ({0}, {0})
    assert found["train/return_mean"] == {0, 1, 2}


def test_figures_of_judges_are_written_one_epoch_after_their_model(summary: RunSummary, tmp_path: Path) -> None:
    found = following(summary, rows_of(summary.epochs[0], 2), tmp_path)
    assert (found["epoch/score_mean"], found["judging/agreement"]) == ({0, 1}, {0})


def test_a_report_that_judges_write_again_is_not_frozen(
    summary: RunSummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trackers, "POLL_S", 0.0)
    done = summary.epochs[0]
    assert done.judging is not None
    final = done.model_copy(update={"judging": done.judging.model_copy(update={"agreement": 0.125})})
    later = [summary.model_copy(update={"state": state, "epochs": [final]}) for state in ("running", "finished")]
    tracker = TensorBoardTracker(tmp_path, {})
    trackers.feed(tracker, summary.model_copy(update={"state": "running"}), lambda: later.pop(0), follow=True)
    tracker.close()
    assert [value for _, value in read(tmp_path)["judging/agreement"]] == [0.125]


@contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """The address of MLflow's own tracking server, with a database in the folder."""
    port = free_ports(1)[0]
    places = {
        "_MLFLOW_SERVER_FILE_STORE": f"sqlite:///{folder}/mlflow.db",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": str(folder / "artifacts"),
    }
    command = [sys.executable, "-m", "flask", "--app", "mlflow.server:app", "run", "--port", str(port)]
    with (folder / "mlflow.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=os.environ | places, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for_http(f"{address}/health", process)
        yield address
    finally:
        process.terminate()
        process.wait()


def wait_for_http(address: str, process: subprocess.Popen[bytes], patience_s: float = 100.0) -> None:
    """Wait until the address answers; AssertionError if its process has ended."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server has ended"
        try:
            if httpx.get(address, trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"{address} does not answer")


@pytest.mark.timeout(240)
def test_mlflows_own_server_stores_configuration_and_figures(summary: RunSummary, tmp_path: Path) -> None:
    with mlflow_server(tmp_path) as uri:
        check_mlflow(summary, uri)


def test_an_absent_mlflow_server_is_reported_in_seconds(
    summary: RunSummary, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MLFLOW_RETRIES, raising=False)
    uri, began = f"http://127.0.0.1:{free_ports(1)[0]}", time.monotonic()
    assert exit_code_of(["export", "mlflow", RUN, "--uri", uri]) == FAILED
    assert time.monotonic() - began < 60
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"zelda: MLflow at {uri}: ")
    assert said.endswith(". Check --uri, and that its server runs.")
    assert MLFLOW_RETRIES not in os.environ


def check_mlflow(summary: RunSummary, uri: str) -> None:
    """Export the run twice, and read it back as MLflow's client does."""
    from mlflow.tracking import MlflowClient

    for _ in range(2):  # a second export replaces the first
        assert exit_code_of(["export", "mlflow", RUN, "--uri", uri]) == OK
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("zelda")
    assert experiment is not None
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.metrics == pytest.approx(epoch_scalars(summary.epochs[0]))
    assert found.data.params["shaping.mode"] == summary.config.shaping.mode
    (point,) = client.get_metric_history(found.info.run_id, "train/return_mean")
    assert point.step == summary.epochs[0].steps


def offline_records(file: Path) -> list[Any]:
    """What W&B's own reader finds in an offline run."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    reader = DataStore()
    reader.open_for_scan(str(file))
    records = []
    while (raw := reader.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(bytes(raw))
        records.append(record)
    reader.close()
    return records


def by_name(items: Iterable[Any]) -> dict[str, Any]:
    """Name -> value of W&B's items."""
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def test_wandbs_own_reader_finds_one_offline_run_with_every_figure(summary: RunSummary, tmp_path: Path) -> None:
    for _ in range(2):  # a second export replaces the first
        assert exit_code_of(["export", "wandb", RUN, "--to", str(tmp_path / "out")]) == OK
    (file,) = (tmp_path / "out").glob("wandb/offline-run-*/*.wandb")
    records = offline_records(file)
    (history,) = [by_name(record.history.item) for record in records if record.WhichOneof("record_type") == "history"]
    expected = epoch_scalars(summary.epochs[0])
    assert {name: history[name] for name in expected} == pytest.approx(expected)
    assert history["steps"] == summary.epochs[0].steps
    (run,) = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    assert (run.run_id, run.project) == (RUN, "zelda")
    assert by_name(run.config.update)["shaping.mode"] == summary.config.shaping.mode


@pytest.mark.parametrize(
    ("project", "sentence"),
    [
        ("a/b", "zelda: W&B: Invalid project name 'a/b': cannot contain characters"),
        (
            "x" * 300,
            f"zelda: W&B: Invalid project name '{'x' * 40}…': exceeded 128 characters: choose another --project.",
        ),
    ],
)
def test_a_refused_wandb_project_leaves_the_earlier_export(
    summary: RunSummary, project: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = tmp_path / f"out/wandb/offline-run-20261101_000000-{RUN}/run-{RUN}.wandb"
    earlier.parent.mkdir(parents=True)
    earlier.touch()
    assert exit_code_of(["export", "wandb", RUN, "--to", str(tmp_path / "out"), "--project", project]) == USAGE
    assert capsys.readouterr().err.startswith(sentence)
    assert earlier.exists()


def test_wandb_removes_an_earlier_run_once_the_new_one_is_complete(tmp_path: Path) -> None:
    earlier, other = (tmp_path / f"wandb/offline-run-20261101_000000-{run}" for run in ("1", "demo-1"))
    for folder, run in ((earlier, "1"), (other, "demo-1")):
        folder.mkdir(parents=True)
        (folder / f"run-{run}.wandb").touch()
    tracker = WandbTracker(tmp_path, "zelda", RunId("1"), {})
    assert earlier.exists()
    tracker.close()
    assert (earlier.exists(), other.exists(), tracker.folder.exists()) == (False, True, True)


def test_an_export_of_an_unknown_run_makes_no_folder(summary: RunSummary, tmp_path: Path) -> None:
    assert exit_code_of(["export", "wandb", "nope", "--to", str(tmp_path / "out")]) == NOT_FOUND
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("package", ["wandb", "minari"])
def test_a_missing_package_names_its_extra(package: str) -> None:
    end = as_cli_error(ModuleNotFoundError(name=package))
    assert end is not None
    assert str(end).endswith(f"pip install -c .ci/constraints.txt -e '.[{package}]'.")


def test_minari_reads_each_judged_segment_as_an_episode(
    summary: RunSummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import minari

    for _ in range(2):  # a second export replaces the first
        assert exit_code_of(["export", "minari", RUN, "--to", str(tmp_path / "minari")]) == OK
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    dataset = minari.load_dataset(f"{RUN}-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (6, 1800)
    for episode in dataset.iterate_episodes():
        assert all(observation in dataset.observation_space for observation in episode.observations)
        assert all(action in dataset.action_space for action in episode.actions)
        assert len(episode.observations) == len(episode.rewards) + 1
        assert 0 <= episode.rewards[-1] <= 1
        assert not episode.rewards[:-1].any()
        assert episode.truncations[-1] != episode.terminations[-1]
    assert sum(episode.rewards[-1] for episode in dataset.iterate_episodes()) / 6 == pytest.approx(
        summary.epochs[0].score_mean
    )
    first, second = minari.split_dataset(dataset, sizes=[4, 2], seed=1)
    assert (first.total_episodes, second.total_episodes) == (4, 2)


def test_unknown_figures_are_left_out() -> None:
    names = ("steps", "episodes", "segments_recorded", "segments_judged", "segments_abstained", "segments_dead")
    row = EpochRow(epoch=0, seconds=1, segments_waiting=0, votes=0, **dict.fromkeys(names, 0))
    assert "epoch/reward_model_accuracy" not in epoch_scalars(row)
    assert epoch_scalars(row)["epoch/seconds"] == 1.0


def test_a_configuration_gets_dotted_names() -> None:
    assert flat_config({"world": "vale", "shaping": {"mode": "gain"}}) == {"world": "vale", "shaping.mode": "gain"}
