"""The tool to check a RAM map by eye says what is decoded, or in a sentence why it cannot."""

import argparse
import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from services.trainer.env import play

ROOT = Path(__file__).resolve().parents[3]


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "services.trainer.env", "play", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_it_prints_a_state_each_second() -> None:
    done = _run("--world", "garden", "--seconds", "3")

    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert len(lines) == 3
    assert all("overworld 0:" in line and "health 3/3" in line and "milestones" in line for line in lines)


def test_a_game_without_its_rom_is_refused_with_a_sentence() -> None:
    done = _run("--game", "oracle-of-seasons")

    assert done.returncode == 1
    assert done.stdout.startswith("oracle-of-seasons needs your own ROM image: name the .gbc file with --rom")


def test_a_game_with_a_title_screen_needs_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "GAMES", SimpleNamespace(open=lambda *_: None))
    said = io.StringIO()
    options = argparse.Namespace(game="oracle-of-seasons", world="vale", rom=None, state=None)
    assert play.watch(options, said) == 1
    assert said.getvalue() == "--state is needed: name a state of this game, saved where the hero can walk\n"


def test_an_unknown_rom_is_named_by_its_hash(tmp_path: Path) -> None:
    rom = tmp_path / "other.gbc"
    rom.write_bytes(b"not a game")

    done = _run("--game", "oracle-of-seasons", "--rom", str(rom))

    assert done.returncode == 1
    assert done.stdout.startswith("unknown ROM with MD5 ")


def test_an_unknown_world_is_refused_with_those_there_are() -> None:
    done = _run("--world", "vael")

    assert done.returncode == 1
    assert done.stdout == "there is no world 'vael': use one of garden, realm, vale, or wild:SEED\n"
    assert done.stderr == ""
