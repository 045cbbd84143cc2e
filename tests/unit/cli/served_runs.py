"""Runs `zelda run ...` against a real coordinator's REST interface in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import build_app
from shared.runtime.health import Health, listen, serve
from tests.servers import free_ports
from tests.unit.coordinator.api_client import OPERATOR
from tests.unit.coordinator.harness import Harness


@asynccontextmanager
async def served(harness: Harness, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    """Serve the coordinator's interface; commands find it by their environment."""
    tokens, port = folder / "tokens", free_ports(1)[0]
    tokens.write_text(f"operator:{OPERATOR}\n")
    monkeypatch.setenv("ZELDACLI_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("ZELDACLI_TOKEN_FILE", str(tokens))
    async with serve(Health(app=harness.app(tokens)), listen("127.0.0.1", port)):
        yield harness


async def zelda_run(*words: str, answer: str | None = None) -> str:
    """Run `zelda run ...` in a thread and return what it prints. `answer` is what the user types."""
    return (await zelda_run_streams(*words, answer=answer))[0]


async def zelda_run_streams(*words: str, answer: str | None = None) -> tuple[str, str]:
    """Run `zelda run ...` in a thread and return its standard output and its standard error."""

    def call() -> tuple[str, str]:
        outcome = CliRunner().invoke(build_app(["run"]), ["run", *words], input=answer)
        if outcome.exception is not None:
            raise outcome.exception
        return outcome.stdout, outcome.stderr

    return await asyncio.to_thread(call)
