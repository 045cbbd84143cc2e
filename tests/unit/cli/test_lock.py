"""Two systems in one directory would break each other: the second one is refused, and touches nothing of the first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.exits import CONFLICT, Quit
from cli.stack.layout import Connection
from cli.stack.lock import held
from cli.stack.system import Options, prepare, running


def said(sentence: str) -> None:
    """Nobody listens."""


def test_a_second_holder_is_told_who_has_the_directory(tmp_path: Path) -> None:
    sentence = rf"runs in {tmp_path} already \(process {os.getpid()}\)"
    with held(tmp_path), pytest.raises(Quit, match=sentence) as refused, held(tmp_path):
        raise AssertionError("two hold it")
    assert refused.value.code == CONFLICT
    with held(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


HOLDER = """
import os, sys
from pathlib import Path
from cli.stack.lock import held

with held(Path(sys.argv[1])):
    os._exit(9)
"""


def test_a_holder_that_was_killed_leaves_the_directory_free(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", HOLDER, str(tmp_path)], check=False).returncode == 9
    with held(tmp_path):
        pass


def files(root: Path) -> dict[Path, bytes]:
    """What stands in a directory."""
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_a_second_system_leaves_the_files_of_the_first_alone(tmp_path: Path) -> None:
    with held(tmp_path):
        first = prepare(Options(root=tmp_path), said)
        first.connection.save(first.layout.connection)
        before = files(tmp_path)
        with pytest.raises(Quit, match="already"):
            async with running(Options(root=tmp_path), said):
                raise AssertionError("two run")
        assert files(tmp_path) == before


async def test_a_system_that_never_got_up_removes_no_connection_but_its_own(tmp_path: Path) -> None:
    other = Connection("http://127.0.0.1:9", tmp_path / "token", 1, {})
    never = prepare(Options(root=tmp_path), said)
    other.save(never.layout.connection)
    await never.end()
    assert Connection.load(never.layout.connection) == other
