"""Provisioning buckets and streams is a child process of `zelda up`: ctrl-C does not reach it, and none remains."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from cli.__main__ import import_as_here
from cli.stack.local_stack import provision
from cli.stack.process import StackError
from tests.child_processes import descendant_running
from tests.unit.cli.test_processes import alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads children from /proc")
SAFE_PATH = "PYTHONSAFEPATH"
PROGRAM = "shared.store.provision"  # creates the buckets


def nowhere(directory: Path) -> dict[str, str]:
    """Settings of a store that never answers, so that `provision` blocks."""
    secret = directory / "secret"
    secret.write_text("none")
    files = {f"ZELDA_STORE__{name}_KEY_FILE": str(secret) for name in ("ACCESS", "SECRET")}
    return {"ZELDA_STORE__URL": "s3://zelda", "ZELDA_STORE__ENDPOINT": "http://127.0.0.1:9", **files}


async def test_ctrl_c_does_not_reach_it_and_cancellation_stops_it(tmp_path: Path) -> None:
    making = asyncio.create_task(provision("store", nowhere(tmp_path)))
    child = await descendant_running(PROGRAM)
    assert os.getpgid(child) == child  # a terminal sends ctrl-C to our group
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    assert not alive(child)


PARENT = """
import asyncio, sys
from pathlib import Path
from cli.stack.local_stack import provision
from tests.unit.cli.test_provision import nowhere

asyncio.run(provision("store", nowhere(Path(sys.argv[1]))))
"""


async def test_it_stops_when_the_command_is_killed(tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, str(tmp_path))
    child = await descendant_running(PROGRAM, parent.pid)
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(10):
        while alive(child):  # noqa: ASYNC110 - another process has no event to offer
            await asyncio.sleep(0.02)


async def test_a_file_of_the_user_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pydantic.py").write_text("raise SystemExit('a file of the user')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SAFE_PATH, "")
    monkeypatch.delenv(SAFE_PATH)
    settings = {"ZELDA_STORE__URL": f"file://{tmp_path}/store"}
    with pytest.raises(StackError, match="the store cannot be provisioned: a file of the user"):
        await provision("store", settings)
    import_as_here(os.environ, str(Path(sys.executable).parent))  # as the program `zelda`, which lies elsewhere
    await provision("store", settings)
    assert (tmp_path / "store").is_dir()


def test_a_program_that_imports_from_here_lets_others_do_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environ: dict[str, str] = {}
    import_as_here(environ, str(tmp_path))
    assert environ == {}
