"""An exported directory is either the complete previous export or the complete new one."""

import errno
from pathlib import Path

import pytest

from services.exporter.adapters.directory import replace_directory

OLD = {"states.jsonl": b"old", "frames/frame_000000.png": b"old", "frames/frame_000001.png": b"old"}
NEW = {"states.jsonl": b"new", "frames/frame_000000.png": b"new"}


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_export_replaces_all_files_of_the_first(tmp_path: Path) -> None:
    replace_directory(tmp_path / "run" / "s000", OLD, b"{1}")
    replace_directory(tmp_path / "run" / "s000", NEW, b"{2}")
    assert content(tmp_path) == {f"run/s000/{name}": data for name, data in {**NEW, "manifest.json": b"{2}"}.items()}


@pytest.mark.parametrize("file", ["states.jsonl", "frame_000000.png", "manifest.json"])
def test_a_full_disk_leaves_the_previous_export_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    replace_directory(tmp_path / "s000", OLD, b"{1}")
    before, write = content(tmp_path), Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        write(path, data[:1])
        if path.name == file:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        replace_directory(tmp_path / "s000", NEW, b"{2}")
    assert content(tmp_path) == before


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    for left in ("s000.partial", "s000.former"):
        replace_directory(tmp_path / left, OLD, b"{1}")
    replace_directory(tmp_path / "s000", NEW, b"{2}")
    assert [path.name for path in tmp_path.iterdir()] == ["s000"]
    assert content(tmp_path / "s000") == {**NEW, "manifest.json": b"{2}"}
