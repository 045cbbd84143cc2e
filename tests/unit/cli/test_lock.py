"""Only one system runs in a directory: a second one is refused and leaves the files of the first unchanged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.errors import CONFLICT, CliError
from cli.stack.layout import Connection
from cli.stack.local_stack import StackOptions, build_stack, run_stack
from cli.stack.lock import locked_directory


def discard(sentence: str) -> None:
    """Discard the sentence."""


def test_a_second_holder_learns_the_process_id_of_the_first(tmp_path: Path) -> None:
    sentence = rf"already runs in {tmp_path} \(process {os.getpid()}\)"
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


def test_a_killed_holder_releases_the_directory(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", HOLDER, str(tmp_path)], check=False).returncode == 9
    with locked_directory(tmp_path):
        pass


def files(root: Path) -> dict[Path, bytes]:
    """All files of a directory with their contents."""
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_a_second_system_leaves_the_files_of_the_first_alone(tmp_path: Path) -> None:
    with locked_directory(tmp_path):
        first = build_stack(StackOptions(root=tmp_path), discard)
        first.connection.save(first.layout.connection)
        before = files(tmp_path)
        with pytest.raises(CliError, match="already"):
            async with run_stack(StackOptions(root=tmp_path), discard):
                raise AssertionError("two run")
        assert files(tmp_path) == before


async def test_a_system_that_failed_to_start_keeps_the_connection_of_another(tmp_path: Path) -> None:
    other = Connection("http://127.0.0.1:9", tmp_path / "token", 1, {})
    never = build_stack(StackOptions(root=tmp_path), discard)
    other.save(never.layout.connection)
    await never.stop()
    assert Connection.load(never.layout.connection) == other
