"""A wall clock that a test steps: libfaketime (Debian's package of this name) between a program and its C library.

The monotonic clock stays right, as it does when a clock is set.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

LIBRARIES: Final = tuple(
    Path(folder) / "faketime/libfaketimeMT.so.1"
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
)
CLOCK_FILE: Final = "clock"
"""In a system's directory: how many seconds the clocks of its services are ahead."""


def library() -> Path | None:
    """The installed library, or None."""
    return next((path for path in LIBRARIES if path.exists()), None)


def stepped_environment(offset: Path) -> Mapping[str, str]:
    """Variables of a process whose clock is `offset` seconds ahead: the file's content, read once a second."""
    found = library()
    if found is None:
        raise FileNotFoundError("clock steps need libfaketime: apt-get install libfaketime")
    step_clock(offset, 0)
    return {
        "LD_PRELOAD": str(found),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": str(Path(__file__).parent / "faketime"),
    }


def step_clock(offset: Path, seconds: int) -> None:
    """Set the clock this many seconds ahead of the true time."""
    replacement = offset.with_suffix(".new")
    replacement.write_text(f"{seconds:+d}\n", encoding="utf-8")
    replacement.replace(offset)
