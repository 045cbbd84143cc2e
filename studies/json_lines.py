"""Files of JSON lines that grow while a program runs, and stay readable when it is killed."""

from pathlib import Path


def read_lines(file: Path) -> list[str]:
    """Return the lines of a file; none if it is absent. A last line that was cut off is dropped from the file."""
    if not file.exists():
        return []
    raw = file.read_bytes()
    whole = raw.rfind(b"\n") + 1
    if whole < len(raw):  # otherwise the next line would be appended to this one
        with file.open("r+b") as cut:
            cut.truncate(whole)
    return split_lines(raw[:whole])


def split_lines(whole: bytes) -> list[str]:
    """Return the lines of UTF-8 text that ends with a line break. Other separators may stand within a JSON text."""
    return whole.decode("utf-8").split("\n")[:-1]


def append_line(file: Path, line: str) -> None:
    """Add a line; a missing folder is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(f"{line}\n")
