"""The figures of a run reach TensorBoard and MLflow, completely and once."""

import asyncio
import shutil
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from cli import trackers
from cli.__main__ import exit_code_of
from cli.errors import OK
from services.exporter.adapters.trackers import TensorBoardTracker, flat_config
from services.exporter.domain.scalars import epoch_scalars
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow, RunSummary
from shared.store import keys
from shared.store.open import open_store
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
    assert trackers.feed(tracker, first, lambda: rest.pop(0), follow=True) == 2
    tracker.close()
    found = read(tmp_path)
    assert rest == []
    assert [step for step, _ in found["train/return_mean"]] == [done.steps, 2 * done.steps]
    assert [step for step, _ in found["epoch/score_mean"]] == [done.steps, 2 * done.steps]
    assert found["epoch/segments_waiting"][0][1] == 0  # not the figure of an unfinished judging


def test_mlflow_stores_configuration_and_figures_of_one_run(
    summary: RunSummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"file:{tmp_path / 'mlruns'}"
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


def test_unknown_figures_are_left_out() -> None:
    names = ("steps", "episodes", "segments_recorded", "segments_judged", "segments_abstained", "segments_dead")
    row = EpochRow(epoch=0, seconds=1, segments_waiting=0, votes=0, **dict.fromkeys(names, 0))
    assert "epoch/reward_model_accuracy" not in epoch_scalars(row)
    assert epoch_scalars(row)["epoch/seconds"] == 1.0


def test_a_configuration_gets_dotted_names() -> None:
    assert flat_config({"world": "vale", "shaping": {"mode": "gain"}}) == {"world": "vale", "shaping.mode": "gain"}
