"""Only one system runs in a directory, and only one command at a time changes a results file."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.commands import explore, study
from cli.errors import CONFLICT, CliError
from cli.stack.layout import Connection
from cli.stack.local_stack import StackOptions, build_stack, run_stack
from cli.stack.lock import locked_directory, locked_file
from cli.stack.ports import PortAllocator
from services.trainer.exploration.archive_file import ArchiveFile
from services.trainer.exploration.exploration import Exploration
from studies.plan import StudyPlan
from studies.results import Results
from tests.unit.studies.invented import curve, plan


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
        first = build_stack(StackOptions(root=tmp_path), discard, PortAllocator())
        first.connection.save(first.layout.connection)
        before = files(tmp_path)
        with pytest.raises(CliError, match="already"):
            async with run_stack(StackOptions(root=tmp_path), discard):
                raise AssertionError("two run")
        assert files(tmp_path) == before


async def test_a_system_that_failed_to_start_keeps_the_connection_of_another(tmp_path: Path) -> None:
    other = Connection("http://127.0.0.1:9", tmp_path / "token", 1, {})
    never = build_stack(StackOptions(root=tmp_path), discard, PortAllocator())
    other.save(never.layout.connection)
    await never.stop()
    assert Connection.load(never.layout.connection) == other


def test_a_file_is_changed_by_one_command_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "results" / "count"

    def increment(_: int) -> None:
        with locked_file(file):
            count = int(file.read_text()) if file.exists() else 0
            time.sleep(0.001)
            file.write_text(str(count + 1))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(increment, range(40)))
    assert file.read_text() == "40"
    assert [path.name for path in file.parent.iterdir()] == ["count"]


FILE_HOLDER = """
import os, sys
from pathlib import Path
from cli.stack.lock import locked_file

with locked_file(Path(sys.argv[1])):
    os._exit(9)
"""


def test_a_killed_holder_releases_the_file(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert subprocess.run([sys.executable, "-c", FILE_HOLDER, str(file)], check=False).returncode == 9
    with locked_file(file):
        pass
    assert list(tmp_path.iterdir()) == []


def slow(read: Callable[..., object]) -> Callable[..., object]:
    """The same, with a pause after it, in which another command could write."""

    def reading(*values: object) -> object:
        found = read(*values)
        time.sleep(0.3)
        return found

    return reading


def test_two_explorations_that_share_a_results_file_keep_both_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shared.json"
    monkeypatch.setattr(explore, "_read", slow(explore._read))
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda seed: explore._save(explored(tmp_path, seed), [], file, 1), (1, 2)))
    assert [one.seed for one in explore._read(file).explorations] == [1, 2]


def explored(folder: Path, seed: int) -> Exploration:
    """An exploration that has not begun."""
    made = explore._plan("garden", seed, "novelty", "room", 4, 4)
    return Exploration(made, b"", ArchiveFile(folder / f"{seed}.sqlite", made.facts()))


def test_two_studies_that_share_a_results_file_keep_both_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "shared.json"
    monkeypatch.setattr(Results, "open", slow(Results.open))
    monkeypatch.setattr(StudyPlan, "load_curves", lambda self, _: {trial: curve(0.0, 0.5) for trial in self.trials()})
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda seed: study._save(file, plan(seeds=(seed,)), tmp_path, "abc"), (1, 2)))
    assert {trial.seed for trial in Results.load(file).curves()} == {1, 2}
