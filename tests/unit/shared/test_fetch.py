"""The store's commands that run before services: one fetches an object into a file, one creates the buckets."""

import asyncio
import errno
from pathlib import Path

import pytest

from shared.store import fetch, provision
from shared.store.object_store import local_store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in a directory with one object in it, named by the environment."""
    asyncio.run(local_store(tmp_path / "store").put("models/roms/game.gbc", b"bytes of a game"))
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}/store")
    return tmp_path


def test_the_object_becomes_the_file(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch.main(["models/roms/game.gbc", str(store / "game.gbc")]) == 0
    assert (store / "game.gbc").read_bytes() == b"bytes of a game"
    assert list(store.glob("*.part")) == []
    assert "15 bytes" in capsys.readouterr().out


def test_missing_object_is_reported_in_one_sentence(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch.main(["models/roms/other.gbc", str(store / "game.gbc")]) == 1
    assert "models/roms/other.gbc" in capsys.readouterr().err
    assert not (store / "game.gbc").exists()


def test_unwritable_file_is_reported_in_one_sentence(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch.main(["models/roms/game.gbc", str(store / "nowhere" / "game.gbc")]) == 1
    [sentence] = capsys.readouterr().err.splitlines()
    assert str(store / "nowhere") in sentence


def test_full_disk_leaves_the_former_file_unchanged(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (store / "game.gbc").write_bytes(b"the game of yesterday")
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        write(path, data[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert fetch.main(["models/roms/game.gbc", str(store / "game.gbc")]) == 1
    assert "No space left" in capsys.readouterr().err
    assert (store / "game.gbc").read_bytes() == b"the game of yesterday"


def test_unusable_store_is_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ZELDA_STORE__URL", "file:///proc/zelda")
    assert provision.main([]) == 1
    [sentence] = capsys.readouterr().err.splitlines()
    assert "/proc/zelda" in sentence
