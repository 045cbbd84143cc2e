"""`zelda open`: the page in a browser without a token in its arguments, or its address where there is no browser."""

import asyncio
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli import errors
from cli.app import build_app
from cli.errors import CliError
from cli.page.browser import SCREENS
from tests.unit.cli.served_runs import served
from tests.unit.cli.test_commands import zelda
from tests.unit.coordinator.api_client import OPERATOR
from tests.unit.coordinator.harness import Harness


@pytest.fixture(autouse=True)
def no_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory on a machine without a screen."""
    monkeypatch.chdir(tmp_path)
    for name in SCREENS:
        monkeypatch.delenv(name, raising=False)


def given() -> dict[str, str]:
    """The variables of this test, for a command in a process of its own."""
    return {name: os.environ[name] for name in ("BROWSER", "ZELDACLI_URL", "ZELDACLI_TOKEN_FILE")}


async def open_page(*words: str) -> Result:
    """Run `zelda open` in a thread."""
    return await asyncio.to_thread(CliRunner().invoke, build_app(["open"]), ["open", *words])


async def test_the_address_is_printed_where_no_browser_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(Harness(), tmp_path, monkeypatch):
        done = await open_page("--run", "demo")
    assert re.fullmatch(rf"http://127\.0\.0\.1:\d+/\?run=demo#token={OPERATOR}\n", done.stdout), done.stdout
    assert not (tmp_path / "runs").exists()


async def test_a_browser_gets_a_file_that_only_the_owner_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    async with served(Harness(), tmp_path, monkeypatch):
        done = await asyncio.to_thread(zelda, "open", "--run", "demo", cwd=tmp_path, **given())
    assert done.returncode == errors.OK, done.stderr
    file = tmp_path / "runs/.local/secrets/page.html"
    assert seen.read_text() == f"{file.as_uri()}\n"
    assert f"/?run=demo#token={OPERATOR}" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert OPERATOR not in done.stdout + done.stderr


async def test_a_browser_that_fails_leaves_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "false %s")
    async with served(Harness(), tmp_path, monkeypatch):
        done = await asyncio.to_thread(zelda, "open", cwd=tmp_path, **given())
    assert done.stdout.rstrip().endswith(f"/#token={OPERATOR}"), done.stderr


async def test_a_wrong_token_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(Harness(), tmp_path, monkeypatch):
        (tmp_path / "wrong").write_text("operator:another-token-0123456789")
        done = await open_page("--token-file", "wrong")
    assert isinstance(done.exception, CliError)
    assert (done.exception.code, done.stdout) == (errors.DENIED, "")


def test_no_system_is_an_error(tmp_path: Path) -> None:
    done = zelda("open", cwd=tmp_path)
    assert (done.returncode, "start one with `zelda up`" in done.stderr) == (errors.UNREACHABLE, True)
