"""`zelda states` saves a state of a recorded segment, or of a file, and shows what was saved."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from bramble.registration import bramble_game
from cli import errors
from cli.__main__ import exit_code_of
from shared.game.emulator.start import true_start
from shared.game.games import oracle
from shared.game.recording.png import SIGNATURE
from shared.store import keys
from tests.unit.cli.test_commands import zelda
from tests.unit.cli.test_ended_system import ARCHIVE, RUN, leave_connection

SEGMENT = "e0000-r00-v01-0000-s001"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which a system with one finished run has ended."""
    directory = tmp_path_factory.mktemp("states")
    shutil.unpack_archive(ARCHIVE, directory / "store")
    leave_connection(directory, {"ZELDA_STORE__URL": f"file://{directory / 'store'}"}, killed=True)
    return directory


def test_a_state_of_a_segment_is_saved_listed_and_drawn(ended: Path) -> None:
    saved = zelda("states", "save", "early", "--run", RUN, "--segment", SEGMENT, "--step", "10", cwd=ended)
    assert saved.returncode == 0, saved.stderr
    assert saved.stdout.startswith("early: room 0:")
    assert "zelda run start -s starts.early=0.3" in saved.stderr
    (listed,) = json.loads(zelda("states", "list", "--json", cwd=ended).stdout)
    assert (listed["name"], listed["world"]) == ("early", "garden")
    assert listed["source"] == f"step 10 of segment {SEGMENT} of run {RUN}"
    shown = zelda("states", "show", "early", "--picture", "early.png", cwd=ended)
    assert "world: garden" in shown.stdout
    assert (ended / "early.png").read_bytes().startswith(SIGNATURE)
    again = zelda("states", "save", "early", "--run", RUN, "--segment", SEGMENT, "--step", "10", cwd=ended)
    assert again.returncode == errors.CONFLICT
    assert "the saved state early exists, and runs may begin there: choose another name." in again.stderr


def test_a_state_of_a_file_is_saved(ended: Path) -> None:
    (ended / "own.state").write_bytes(true_start(bramble_game("vale")).state)
    saved = zelda("states", "save", "own", "--file", "own.state", "-s", "world=vale", "--json", cwd=ended)
    assert json.loads(saved.stdout)["source"] == "file own.state"
    forgotten = zelda("states", "save", "default-world", "--file", "own.state", cwd=ended)
    assert "room 0:" in forgotten.stdout
    assert " of bramble, world vale, normal, 0 milestones, file own.state" in forgotten.stdout


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("save", "x"), errors.USAGE, "Name --run and --segment, or --file alone"),
        (("save", "x", "--run", RUN, "--segment", SEGMENT, "--step", "9999"), errors.USAGE, "--step 9999: the segment"),
        (("save", "x", "--run", RUN, "--segment", SEGMENT, "--step", "5"), errors.USAGE, "in which he can is 9."),
        (("save", "x", "--run", RUN, "--segment", "nothing"), errors.NOT_FOUND, "lists a segment nothing."),
        (("save", "x", "--file", "damaged"), errors.USAGE, "--file damaged: this version of PyBoy did not save it"),
        (("save", "x", "--file", "own.state", "--step", "5"), errors.USAGE, "--step goes with --run and --segment"),
        (("save", "x", "--run", RUN, "--segment", SEGMENT, "-s", "world=vale"), errors.USAGE, "-s goes with --file"),
        (("save", "x", "--file", "own.state", "-s", "epochs=3"), errors.USAGE, "-s epochs: a state has game, world,"),
        (
            ("save", "x", "--file", "own.state", "--rom", "a"),
            errors.USAGE,
            "--rom a: without its game, the state is one",
        ),
        (("save", "x", "--file", "missing"), errors.USAGE, "--file missing: No such file or directory"),
        (("save", "../x", "--file", "damaged"), errors.USAGE, "is not the name of a saved state"),
        (("show", "nothing"), errors.NOT_FOUND, "no saved state is named nothing"),
    ],
)
def test_what_cannot_be_saved_or_shown_is_named(ended: Path, words: tuple[str, ...], code: int, sentence: str) -> None:
    (ended / "damaged").write_bytes(b"no state")
    done = zelda("states", *words, cwd=ended)
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr


def test_a_state_of_ones_own_game_has_no_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    game = bramble_game("garden", torn=True)
    monkeypatch.setattr(oracle, "ORACLE_MD5", hashlib.md5(game.rom, usedforsecurity=False).hexdigest())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path / 'store'}")
    for bucket in keys.BUCKETS:
        (tmp_path / "store" / bucket).mkdir(parents=True)
    (tmp_path / "own.gbc").write_bytes(game.rom)
    (tmp_path / "own.state").write_bytes(true_start(game).state)
    own = ("--file", "own.state", "--rom", "own.gbc", "-s", "game=oracle-of-seasons")
    assert exit_code_of(["states", "save", "own", *own]) == errors.OK
    assert " of oracle-of-seasons, 0 milestones, file own.state" in capsys.readouterr().out
    assert exit_code_of(["states", "list"]) == errors.OK
    assert capsys.readouterr().out.splitlines()[1].startswith("own\toracle-of-seasons\t\t\t0:")


def test_an_epoch_that_cannot_begin_there_leaves_no_run(ended: Path) -> None:
    asked = zelda("epoch", "--run", "away", "--store", "store", "-s", "starts.nowhere=0.5", cwd=ended)
    assert asked.returncode == errors.USAGE
    assert "--set starts: no saved state is named nowhere: " in asked.stderr
    assert "away" not in zelda("run", "list", cwd=ended).stdout
