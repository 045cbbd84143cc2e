"""Checks output paths before a command does any work."""

from pathlib import Path

from cli.errors import USAGE, CliError


def require_writable_file(file: Path) -> None:
    """CliError if `file` is a directory, or if its parent directory is missing."""
    if file.is_dir():
        raise CliError(USAGE, f"{file} is a directory: name a file.")
    parent = file.absolute().parent
    if not parent.is_dir():
        raise CliError(USAGE, f"The directory {parent} for {file.name} does not exist: create it first.")


def require_directory(path: Path) -> None:
    """CliError if `path` exists and is not a directory."""
    if path.exists() and not path.is_dir():
        raise CliError(USAGE, f"{path} is not a directory: name a directory, or a path that does not exist yet.")
