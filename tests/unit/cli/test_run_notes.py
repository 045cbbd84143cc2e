"""`zelda run note` and `zelda run list --tag` against a real coordinator's REST interface."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.errors import CliError
from tests.unit.cli.served_runs import served, zelda_run
from tests.unit.coordinator.harness import started_run


@pytest.fixture
async def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A coordinator with the run `demo`."""
    async with served(await started_run(), tmp_path, monkeypatch):
        yield


async def test_a_note_is_written_shown_and_changed(system: None) -> None:
    assert await zelda_run("note", "demo") == "demo has no note and no tags: add them with --text and --tag.\n"
    written = await zelda_run("note", "demo", "--text", "doubled entropy", "--tag", "b", "--tag", "a")
    assert written == "tags: a, b\nnote: doubled entropy\n"
    assert await zelda_run("note", "demo", "--untag", "b") == "tags: a\nnote: doubled entropy\n"
    assert "tags: a\nnote: doubled entropy\n" in await zelda_run("show", "demo")


async def test_the_list_shows_tags_and_filters_by_them(system: None) -> None:
    await zelda_run("note", "demo", "--tag", "baseline")
    assert (await zelda_run("list", "--tag", "baseline")).splitlines()[-1].endswith("\tbaseline")
    assert "demo" not in await zelda_run("list", "--tag", "other")


async def test_a_bad_tag_is_refused_with_a_sentence(system: None) -> None:
    with pytest.raises(CliError, match="'No Tag' is not a Tag: use 1-40"):
        await zelda_run("note", "demo", "--tag", "No Tag")


@pytest.mark.parametrize("command", ["show", "stop", "resume", "note"])
async def test_a_mistyped_run_is_answered_with_the_name_that_was_meant(system: None, command: str) -> None:
    with pytest.raises(CliError, match=r"^There is no run dmo: .*`zelda run list`; did you mean demo\?$"):
        await zelda_run(command, "dmo")
