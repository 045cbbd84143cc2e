"""A small disk of its own for a test, which can be filled: a file system in memory. Mounting needs root."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MEGABYTES: Final = 600  # a system of a few epochs needs some 200
BLOCK: Final = bytes(1_000_000)


def mountable() -> bool:
    """Whether this user can mount a file system here."""
    return os.geteuid() == 0 and Path("/usr/bin/mount").exists()


@contextmanager
def small_disk(place: Path, megabytes: int = MEGABYTES) -> Iterator[None]:
    """Mount a small disk at this directory during the body."""
    command = ["/usr/bin/mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "small-disk", str(place)]
    subprocess.run(command, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["/usr/bin/umount", "--lazy", str(place)], check=True, capture_output=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Fill the disk during the body."""
    filler = disk / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            _write_until_full(file.fileno())
            yield
    finally:
        filler.unlink()


def _write_until_full(file: int) -> None:
    block = BLOCK
    while True:
        try:
            os.write(file, block)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            if len(block) == 1:
                return
            block = block[: len(block) // 2]
