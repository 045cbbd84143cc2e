"""Text files that a reader sees as they were or as they are now, and never half written."""

from pathlib import Path

from shared.process.whole_file import write_whole_file


def write_whole(file: Path, text: str) -> None:
    """Write a text file as a whole; missing folders are made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole_file(file, text.encode())
