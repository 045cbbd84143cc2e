"""`zelda run delete` against a real coordinator's REST interface: it asks, says what is gone, and refuses plainly."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import typer

from cli.errors import NOT_FOUND, CliError
from cli.runs import deletion
from shared.store import keys
from tests.unit.cli.served_runs import served, zelda_run, zelda_run_streams
from tests.unit.coordinator.harness import RUN, Harness, judged_epoch


@pytest.fixture
async def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    """A coordinator with a running run."""
    async with served(await judged_epoch(), tmp_path, monkeypatch) as harness:
        yield harness


async def stop(harness: Harness) -> None:
    """Stop the run."""
    await harness.service.stop(RUN)
    await harness.passes(40)
    assert await harness.state() == "stopped"


async def test_an_active_run_is_refused_with_the_command_to_stop(harness: Harness) -> None:
    with pytest.raises(CliError, match="Run demo is running: first `zelda run stop demo`"):
        await zelda_run("delete", RUN, "--yes")
    assert await harness.state() == "running"


async def test_without_a_confirmation_nothing_is_deleted(harness: Harness) -> None:
    await stop(harness)
    for answer in ("n\n", None):  # None: no terminal answers
        with pytest.raises(CliError, match="demo was not deleted: confirm with `y`, or pass --yes"):
            await zelda_run("delete", RUN, answer=answer)
    assert await harness.state() == "stopped"


def test_ctrl_c_at_the_question_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> bool:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise typer.Abort from None  # as typer ends its question

    monkeypatch.setattr(typer, "confirm", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deletion._confirmed("Delete it?")


async def test_a_confirmed_deletion_says_what_is_gone(harness: Harness) -> None:
    await stop(harness)
    printed, asked = await zelda_run_streams("delete", RUN, answer="y\n")
    assert "Delete the stopped run demo with everything" in asked
    assert "Delete the stopped run" not in printed  # standard output is for data
    assert "demo is deleted: " in printed
    assert not await harness.store.list(keys.segments_prefix(RUN))
    with pytest.raises(CliError) as refused:
        await zelda_run("delete", "nope", "--yes")
    assert refused.value.code == NOT_FOUND


async def test_scripts_get_the_numbers_as_json(harness: Harness) -> None:
    await stop(harness)
    printed = await zelda_run("delete", RUN, "--yes", "--json")
    deleted, _ = json.JSONDecoder().raw_decode(printed[printed.index("{\n") :])  # the coordinator logs here, too
    assert (deleted["run"], deleted["objects"]["segments"]) == (RUN, 4)
