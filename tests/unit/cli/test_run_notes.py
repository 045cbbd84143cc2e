"""`zelda run note` and `zelda run list --tag` against a real coordinator's REST interface."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import build_app
from cli.errors import CliError
from shared.runtime.health import Health, listen, serve
from tests.servers import free_ports
from tests.unit.coordinator.api_client import OPERATOR
from tests.unit.coordinator.harness import started_run


@pytest.fixture
async def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A coordinator with the run `demo`, which the command finds by its environment."""
    tokens, port = tmp_path / "tokens", free_ports(1)[0]
    tokens.write_text(f"operator:{OPERATOR}\n")
    monkeypatch.setenv("ZELDACLI_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("ZELDACLI_TOKEN_FILE", str(tokens))
    harness = await started_run()
    async with serve(Health(app=harness.app(tokens)), listen("127.0.0.1", port)):
        yield


async def zelda(*words: str) -> str:
    """Run `zelda run ...` in a thread and return what it prints."""

    def call() -> str:
        outcome = CliRunner().invoke(build_app(["run"]), ["run", *words])
        if outcome.exception is not None:
            raise outcome.exception
        return outcome.stdout

    return await asyncio.to_thread(call)


async def test_a_note_is_written_shown_and_changed(system: None) -> None:
    assert await zelda("note", "demo") == "demo has no note and no tags: add them with --text and --tag.\n"
    written = await zelda("note", "demo", "--text", "doubled entropy", "--tag", "b", "--tag", "a")
    assert written == "tags: a, b\nnote: doubled entropy\n"
    assert await zelda("note", "demo", "--untag", "b") == "tags: a\nnote: doubled entropy\n"
    assert "tags: a\nnote: doubled entropy\n" in await zelda("show", "demo")


async def test_the_list_shows_tags_and_filters_by_them(system: None) -> None:
    await zelda("note", "demo", "--tag", "baseline")
    assert (await zelda("list", "--tag", "baseline")).splitlines()[-1].endswith("\tbaseline")
    assert "demo" not in await zelda("list", "--tag", "other")


async def test_a_bad_tag_is_refused_with_a_sentence(system: None) -> None:
    with pytest.raises(CliError, match="'No Tag' is not a Tag: use 1-40"):
        await zelda("note", "demo", "--tag", "No Tag")
