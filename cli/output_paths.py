"""Checks output paths before a command does any work."""

import os
from pathlib import Path
from typing import Final

from cli.errors import USAGE, CliError

PICTURE: Final = (".png",)
VIDEO: Final = (".mp4",)


def require_writable_file(file: Path, endings: tuple[str, ...] = ()) -> None:
    """CliError if `file` is something else than a file, cannot be written, or has none of the `endings`, if any.

    A device or a pipe is refused: several writers put a complete file in the place of what has its name.
    """
    if file.is_dir():
        raise CliError(USAGE, f"{file} is a directory: name a file.")
    parent = file.absolute().parent
    if not parent.is_dir():
        raise CliError(USAGE, f"The directory {parent} for {file.name} does not exist: create it first.")
    if file.exists() and not file.is_file():
        raise CliError(USAGE, f"{file} is a device or a pipe: name a file.")
    if endings and file.suffix.lower() not in endings:
        raise CliError(USAGE, f"{file} has the wrong ending: name a file that ends in {' or '.join(endings)}.")
    places = (file, parent) if file.exists() else (parent,)  # a complete file takes the place of the former one
    if not all(os.access(place, os.W_OK) for place in places):
        raise CliError(USAGE, f"{file} cannot be written: choose a file or a directory that you may change.")


def require_directory(path: Path) -> None:
    """CliError if `path` exists and is not a directory."""
    if path.exists() and not path.is_dir():
        raise CliError(USAGE, f"{path} is not a directory: name a directory, or a path that does not exist yet.")
