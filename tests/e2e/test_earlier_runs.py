"""A run that version 0.1.0 wrote on 2026-11-22 stays readable: its documents, segments, reward model and checkpoint."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from shared.rewardnet import load
from shared.store import keys

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "tests/data/run_of_2026_11_22.zip"
RUN = "demo-20261123-001156"
SCHEMA_OF_DOCUMENT = {
    "models/runs/*/record/*.json": "run-record",
    "models/runs/*/epochs/*/start.json": "epoch-start",
    "models/runs/*/epochs/*/finished.json": "epoch-finished",
    "models/runs/*/reward_model/*/card.json": "reward-model-card",
    "models/runs/*/evaluations/*/judges.json": "epoch-judging",
    "models/runs/*/pipeline/progress.json": "run-progress",
    "models/runs/*/summary.json": "run-summary",
    "episodes/scores/*/*/default/*.json": "segment-scores",
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The buckets of the earlier run, unpacked."""
    shutil.unpack_archive(ARCHIVE, tmp_path / "store")
    return tmp_path / "store"


def zelda(store: Path, *words: str) -> str:
    """What the command line prints about this store."""
    answer = subprocess.run(
        [sys.executable, "-m", "cli", *words],
        cwd=store.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), "ZELDA_STORE__URL": f"file://{store}"},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.parametrize(("pattern", "schema"), SCHEMA_OF_DOCUMENT.items())
def test_documents_of_an_earlier_run_match_todays_schemas(store: Path, pattern: str, schema: str) -> None:
    rules = json.loads((ROOT / f"shared/contracts/schemas/{schema}.json").read_text())
    documents = sorted(store.glob(pattern))
    assert documents
    for document in documents:
        jsonschema.validate(json.loads(document.read_text()), rules)


@pytest.mark.slow
def test_segments_of_an_earlier_run_replay_exactly(store: Path) -> None:
    folders = json.loads(zelda(store, "export", "segments", RUN, "--to", "out", "--json"))
    assert len(folders) == 6  # a segment whose replay differs from its recording is refused


def test_steps_and_scores_of_an_earlier_run_become_a_data_set(store: Path) -> None:
    zelda(store, "export", "dataset", RUN, "--to", "run.parquet")
    table = pq.read_table(store.parent / "run.parquet")
    assert table.num_rows == 6 * 300
    assert table.column("score").null_count == 0


def test_the_reward_model_of_an_earlier_run_loads(store: Path) -> None:
    raw = next(store.glob(f"{keys.MODELS}/runs/{RUN}/reward_model/epoch_0/rm-*.safetensors")).read_bytes()
    assert load(raw, "obs/v1").members > 1


@pytest.mark.slow
def test_an_earlier_run_plays_on_from_its_checkpoint(store: Path) -> None:
    account = json.loads(zelda(store, "epoch", "--run", RUN, "--store", str(store), "--json"))
    assert (account["epoch"], account["steps"]) == (1, 2_000)
    assert account["segments"]
