"""`zelda run delete` against a real coordinator's REST interface: it asks, says what is gone, and refuses plainly."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import build_app
from cli.errors import NOT_FOUND, CliError
from shared.runtime.health import Health, listen, serve
from shared.store import keys
from tests.servers import free_ports
from tests.unit.coordinator.api_client import OPERATOR
from tests.unit.coordinator.harness import RUN, Harness, judged_epoch


@pytest.fixture
async def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    """A coordinator with a running run, which the command finds by its environment."""
    tokens, port = tmp_path / "tokens", free_ports(1)[0]
    tokens.write_text(f"operator:{OPERATOR}\n")
    monkeypatch.setenv("ZELDACLI_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("ZELDACLI_TOKEN_FILE", str(tokens))
    found = await judged_epoch()
    async with serve(Health(app=found.app(tokens)), listen("127.0.0.1", port)):
        yield found


async def zelda(*words: str, answer: str | None = None) -> str:
    """Run `zelda run delete ...` in a thread and return what it prints."""

    def call() -> str:
        outcome = CliRunner().invoke(build_app(["run"]), ["run", "delete", *words], input=answer)
        if outcome.exception is not None:
            raise outcome.exception
        return outcome.stdout

    return await asyncio.to_thread(call)


async def stop(harness: Harness) -> None:
    """Stop the run."""
    await harness.service.stop(RUN)
    await harness.passes(40)
    assert await harness.state() == "stopped"


async def test_an_active_run_is_refused_with_the_command_to_stop(harness: Harness) -> None:
    with pytest.raises(CliError, match="Run demo is running: first `zelda run stop demo`"):
        await zelda(RUN, "--yes")
    assert await harness.state() == "running"


async def test_without_a_confirmation_nothing_is_deleted(harness: Harness) -> None:
    await stop(harness)
    for answer in ("n\n", None):  # None: no terminal answers
        with pytest.raises(CliError, match="demo was not deleted: confirm with `y`, or pass --yes"):
            await zelda(RUN, answer=answer)
    assert await harness.state() == "stopped"


async def test_a_confirmed_deletion_says_what_is_gone(harness: Harness) -> None:
    await stop(harness)
    printed = await zelda(RUN, answer="y\n")
    assert "Delete the stopped run demo with everything" in printed
    assert "demo is deleted: " in printed
    assert not await harness.store.list(keys.segments_prefix(RUN))
    with pytest.raises(CliError) as refused:
        await zelda("nope", "--yes")
    assert refused.value.code == NOT_FOUND


async def test_scripts_get_the_numbers_as_json(harness: Harness) -> None:
    await stop(harness)
    printed = await zelda(RUN, "--yes", "--json")
    deleted, _ = json.JSONDecoder().raw_decode(printed[printed.index("{\n") :])  # the coordinator logs here, too
    assert (deleted["run"], deleted["objects"]["segments"]) == (RUN, 4)
