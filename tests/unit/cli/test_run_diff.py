"""`zelda run diff`: equal runs are equal whatever their names and times; a difference is named where it arises."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import build_app
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.scores import SegmentScores
from shared.store import keys

ARCHIVE = Path(__file__).parents[2] / "data/run_of_2026_11_22.zip"
RUN = "demo-20261123-001156"
EARLIER, LATER = "2026-11-2", "2027-01-1"


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The store of an earlier run, and another one that holds the same play at another time."""
    first, second = tmp_path / "first", tmp_path / "second"
    for store in (first, second):
        shutil.unpack_archive(ARCHIVE, store)
    for file in (second / keys.MODELS).rglob("*.json"):
        file.write_text(file.read_text().replace(EARLIER, LATER))
    for file in (second / keys.EPISODES).rglob("*-s0*.json"):
        file.write_text(file.read_text().replace(EARLIER, LATER))
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{first}")
    return first, second


def diff(second: Path) -> tuple[int, dict[str, tuple[int, list[str]]], str]:
    """Exit code, (equal, differing) by kind of object, and message of `zelda run diff RUN RUN`."""
    words = ["run", "diff", RUN, RUN, "--other-store", str(second), "--json"]
    result = CliRunner().invoke(build_app(words), words)
    rows = json.loads(result.stdout) if result.stdout else []
    found = {row["kind"]: (row["equal"], row["differing"]) for row in rows}
    return result.exit_code, found, str(result.exception)


def test_the_same_play_at_another_time_is_equal(stores: tuple[Path, Path]) -> None:
    code, found, _ = diff(stores[1])
    assert code == 0
    assert set(found) == {"order", "segments", "figures", "scores", "reward model"}
    assert (found["segments"], found["scores"]) == ((6, []), (6, []))
    assert not any(differing for _, differing in found.values())


def test_another_vote_is_the_first_divergence(stores: tuple[Path, Path]) -> None:
    file = next((stores[1] / keys.EPISODES).rglob("*-s000.json"))
    score = SegmentScores.from_bytes(file.read_bytes())
    file.write_bytes(score.model_copy(update={"weighted": 0.123}).to_bytes())
    code, found, message = diff(stores[1])
    assert code == 1
    assert found["scores"] == (5, [file.stem])
    assert "epoch 0, first in: scores" in message


def test_another_figure_diverges_before_the_scores(stores: tuple[Path, Path]) -> None:
    file = next((stores[1] / keys.MODELS).rglob("finished.json"))
    finished = EpochFinishedRecord.from_bytes(file.read_bytes())
    times = {"steps_per_s": 1.0, "evaluation_s": 9.0}  # these may differ
    changed = {"return_mean": -1.0, **times}
    file.write_bytes(finished.model_copy(update={"metrics": finished.metrics | changed}).to_bytes())
    _, found, message = diff(stores[1])
    assert found["figures"][1] == ["return_mean"]
    assert "first in: figures" in message


def test_a_different_configuration_is_named_with_both_values(stores: tuple[Path, Path]) -> None:
    file = next((stores[1] / keys.MODELS).rglob("start.json"))
    start = EpochStart.from_bytes(file.read_bytes())
    shaping = start.config.shaping.model_copy(update={"mode": "none"})
    config = start.config.model_copy(update={"seed": 77, "shaping": shaping})
    file.write_bytes(start.model_copy(update={"config": config}).to_bytes())
    code, found, message = diff(stores[1])
    assert code == 1
    assert found["order"][1] == [
        f"seed: {start.config.seed} | 77",
        f'shaping.mode: "{start.config.shaping.mode}" | "none"',
    ]
    assert "first in: order (seed: " in message


def test_an_unknown_run_is_one_sentence(stores: tuple[Path, Path]) -> None:
    words = ["run", "diff", RUN, "nobody"]
    result = CliRunner().invoke(build_app(words), words)
    assert "There is no run nobody: list the runs" in str(result.exception)


def test_a_mistyped_directory_is_named_and_stays_absent(stores: tuple[Path, Path]) -> None:
    absent = stores[1].with_name("secnd")
    assert diff(absent)[1:] == ({}, f"There is no store in {absent}: check --other-store.")
    assert not absent.exists()
