"""Looks at files that a command is to write, before any work is done for them."""

from pathlib import Path

from cli.errors import USAGE, CliError


def require_writable_file(file: Path) -> None:
    """CliError if the directory that is to receive the file is missing, or if a directory has the file's name."""
    if file.is_dir():
        raise CliError(USAGE, f"{file} is a directory: name the file to write, in it or elsewhere.")
    place = file.absolute().parent
    if not place.is_dir():
        raise CliError(USAGE, f"There is no directory {place} to write {file.name} into: make it first.")


def require_directory(path: Path) -> None:
    """CliError if something else than a directory stands where one is to be filled."""
    if path.exists() and not path.is_dir():
        raise CliError(USAGE, f"{path} is no directory: name one, or a path where one can be made.")
