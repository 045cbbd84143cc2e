"""Files that a reader sees as they were or as they are now, and never half written."""

import os
from pathlib import Path


def write_whole_file(file: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file that a reader sees as it was or whole, also after ctrl-C or on a full disk. Raises OSError.

    It is written beside its place, under a name of this process: another command may write the same file. A link leads
    to its file, which keeps its mode; only the owner can read a `private` one, from its first byte on.
    """
    target = file.resolve()
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    try:
        with open(part, "wb", opener=_open_private if private else None) as out:
            out.write(content)
        if mode is not None and not private:
            part.chmod(mode)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)
