"""An export as a folder on this machine. Under its name it is whole; a later one takes its place at once."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from services.exporter.domain.manifest import MANIFEST


def write_folder(folder: Path, files: Mapping[str, bytes], manifest: bytes) -> None:
    """Write the files beside the folder, and swap them in: an interruption leaves the former export as it was."""
    partial = folder.with_name(folder.name + ".partial")  # no id has a dot: it is no other segment's folder
    _remove(partial)  # of a process that was killed
    try:
        for name, content in {**files, MANIFEST: manifest}.items():
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _swap(partial, folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)  # a full disk gets its room back
        raise


def _swap(partial: Path, folder: Path) -> None:
    """Rename, since a folder with a manifest is whole: written over, it would have old and new files for a while."""
    former = folder.with_name(folder.name + ".former")
    _remove(former)
    if folder.is_dir():
        folder.rename(former)
    partial.rename(folder)
    _remove(former)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
