"""Runs llama.cpp's own HTTP server with the tiny random model."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.integration.tiny_model import write_eye, write_text_model
from tests.servers import free_ports

KEY = "sk-tiny"


@contextmanager
def serving_tiny_model(folder: Path, slots: int = 4, *, pictures: bool = False) -> Iterator[str]:
    """Base address of a running server; its key is KEY, its model `tiny`."""
    port = free_ports(1)[0]
    write_text_model(folder / "model.gguf")
    (folder / "key").write_text(KEY)
    options = ["--port", str(port), "--key-file", str(folder / "key"), "--name", "tiny", "--slots", str(slots)]
    options += ["--context", "16384", "--threads", "1"]
    if pictures:
        write_eye(folder / "eye.gguf")
        options += ["--projector", str(folder / "eye.gguf")]
    command = [sys.executable, "-m", "cli.llm.llama_server", str(folder / "model.gguf"), *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=Path(__file__).parents[2])
        try:
            _wait(f"http://127.0.0.1:{port}/health", folder / "log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()
            process.wait(10)


def _wait(url: str, log: Path) -> None:
    for _ in range(300):
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    pytest.fail(f"the inference server did not start: {log.read_text()[-2_000:]}")
