"""`zelda demo --llm`: from a model file to the report, with a tiny random model behind llama.cpp's own server."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.integration.tiny_model import write_text_model

pytestmark = [pytest.mark.llm, pytest.mark.slow, pytest.mark.timeout(400)]

FIRST = "restarts.explore=1000"
SHORT = {"epochs": 1, "epoch_steps": 600, "batch_size": 300, "envs_per_runner": 2, "episode_length": 300}


async def test_a_language_model_judges_a_whole_run(tmp_path: Path) -> None:
    write_text_model(tmp_path / "tiny.gguf")
    options = [word for name, value in SHORT.items() for word in ("-s", f"{name}={value}")]
    command = [
        "-m",
        "cli",
        "demo",
        "--llm",
        str(tmp_path / "tiny.gguf"),
        *options,
        "-s",
        "sampling.budget=3",
        "-s",
        FIRST,
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        "--out",
        str(tmp_path / "runs"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    (folder,) = (tmp_path / "runs").glob("demo-*")
    (epoch,) = json.loads((folder / "summary.json").read_text())["epochs"]
    recorded = epoch["segments_recorded"]
    assert recorded in (2, 3), "short episodes of the curriculum may leave one segment fewer than the budget"
    assert epoch["segments_judged"] == recorded
    assert epoch["votes"] == 3 * recorded
    report = (folder / "report.html").read_text()
    assert '"judge":"llm"' in report, "the judge's votes"
    assert '"reasons":["' in report, "its reasons"
    assert "video/mp4" in report
