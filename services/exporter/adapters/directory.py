"""Writes an export as a local directory, atomically: under its name it is complete, and a later export replaces it."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from services.exporter.domain.manifest import MANIFEST


def replace_directory(directory: Path, files: Mapping[str, bytes], manifest: bytes) -> None:
    """Write the files beside the directory, then swap them in; an interruption leaves the previous export intact."""
    partial = directory.with_name(directory.name + ".partial")  # no id contains a dot: no other segment has this name
    _remove(partial)  # left by a killed process
    try:
        for name, content in {**files, MANIFEST: manifest}.items():
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _swap(partial, directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)  # free the space on a full disk
        raise


def _swap(partial: Path, directory: Path) -> None:
    """Rename: files overwritten in place would mix old and new under one manifest for a while."""
    previous = directory.with_name(directory.name + ".former")
    _remove(previous)
    if directory.is_dir():
        directory.rename(previous)
    partial.rename(directory)
    _remove(previous)


def _remove(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)
