"""Two systems in one directory would break each other: the second one is refused, and touches nothing of the first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.errors import CONFLICT, CliError
from cli.stack.layout import Connection
from cli.stack.local_stack import StackOptions, build_stack, run_stack
from cli.stack.lock import locked_directory


def said(sentence: str) -> None:
    """NoShaping listens."""


def test_a_second_holder_is_told_who_has_the_directory(tmp_path: Path) -> None:
    sentence = rf"runs in {tmp_path} already \(process {os.getpid()}\)"
    with locked_directory(tmp_path), pytest.raises(CliError, match=sentence) as refused, locked_directory(tmp_path):
        raise AssertionError("two hold it")
    assert refused.value.code == CONFLICT
    with locked_directory(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


HOLDER = """
import os, sys
from pathlib import Path
from cli.stack.lock import locked_directory

with locked_directory(Path(sys.argv[1])):
    os._exit(9)
"""


def test_a_holder_that_was_killed_leaves_the_directory_free(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", HOLDER, str(tmp_path)], check=False).returncode == 9
    with locked_directory(tmp_path):
        pass


def files(root: Path) -> dict[Path, bytes]:
    """What stands in a directory."""
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_a_second_system_leaves_the_files_of_the_first_alone(tmp_path: Path) -> None:
    with locked_directory(tmp_path):
        first = build_stack(StackOptions(root=tmp_path), said)
        first.connection.save(first.layout.connection)
        before = files(tmp_path)
        with pytest.raises(CliError, match="already"):
            async with run_stack(StackOptions(root=tmp_path), said):
                raise AssertionError("two run")
        assert files(tmp_path) == before


async def test_a_system_that_never_got_up_removes_no_connection_but_its_own(tmp_path: Path) -> None:
    other = Connection("http://127.0.0.1:9", tmp_path / "token", 1, {})
    never = build_stack(StackOptions(root=tmp_path), said)
    other.save(never.layout.connection)
    await never.end()
    assert Connection.load(never.layout.connection) == other
