"""`zelda run start` says where the run can be seen, how long it may take, and what to type next."""

import asyncio
import os
from pathlib import Path

import pytest

from cli import errors
from tests.unit.cli.served_runs import served
from tests.unit.cli.test_commands import zelda
from tests.unit.coordinator.harness import Harness


async def test_a_started_run_comes_with_its_page_and_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(Harness(), tmp_path, monkeypatch):
        reach = {name: os.environ[name] for name in ("ZELDACLI_URL", "ZELDACLI_TOKEN_FILE")}
        done = await asyncio.to_thread(zelda, "run", "start", "first", "-s", "world=garden", cwd=tmp_path, **reach)
    assert (done.returncode, done.stdout) == (errors.OK, "first\n"), done.stderr
    estimate, page, following = done.stderr.splitlines()
    assert estimate.startswith("No similar run was measured here before")
    assert page == f"The run starts. Live page:  {reach['ZELDACLI_URL']}/?run=first"
    assert following == "Next:  zelda run watch first    zelda run stop first"
