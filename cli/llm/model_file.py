"""The model file of `--llm`: found and recognised before anything starts. llama.cpp itself checks the rest."""

import os
import stat
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cli.errors import INSTALL, USAGE, CliError
from cli.llm.local_judge import LocalModel

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)  # llama.cpp reads no others
HEADER: Final = struct.Struct("<4sI")


def find_model(path: Path) -> LocalModel:
    """Return a model that llama.cpp can serve here; CliError with what to do otherwise."""
    if find_spec("xllamacpp") is None:
        raise CliError(USAGE, f"--llm needs llama.cpp's server, which is not installed: {INSTALL.format('llm')}.")
    try:
        _require_gguf(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CliError(USAGE, f"--llm {path}: {reason}: name the .gguf file of an instruct model.") from error
    return LocalModel(path.absolute())


def _require_gguf(path: Path) -> None:
    if path.is_fifo():  # opening it would wait for a writer
        raise CliError(USAGE, f"--llm {path}: it is a pipe: name the .gguf file of an instruct model.")
    with path.open("rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise CliError(USAGE, f"--llm {path}: it is not a regular file: name the .gguf file of an instruct model.")
        header = file.read(HEADER.size)
    if len(header) < HEADER.size or header[:4] != MAGIC:
        message = "it is not a GGUF file: name a model in the format of llama.cpp (its name usually ends in .gguf)."
        raise CliError(USAGE, f"--llm {path}: {message}")
    version = HEADER.unpack(header)[1]
    if version not in VERSIONS:
        message = f"it has GGUF version {version}, but llama.cpp reads only 2 and 3: convert the model again."
        raise CliError(USAGE, f"--llm {path}: {message}")
