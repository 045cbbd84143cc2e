"""Files that a reader sees as they were or as they are now, and never half written."""

from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Write a file through another one beside it; missing folders are made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)
