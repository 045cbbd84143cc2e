"""`python -m services.trainer.driver.stop`: ask the drivers in this container to stop, and wait for them.

Ray's head runs it before it ends (a preStop hook): Ray itself gives a driver no time to write its checkpoint.
"""

import argparse
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
MODULES = (b"services.trainer.driver", b"services.trainer.rl.driver")
"""Names of the driver's module, in this release and in earlier ones."""
POLL_S = 0.2


def main(argv: list[str] | None = None) -> int:
    """Send SIGTERM to every driver and wait until all have exited; return 1 if one still runs after the limit."""
    parser = argparse.ArgumentParser(prog="python -m services.trainer.driver.stop", description=__doc__)
    parser.add_argument("--seconds", type=float, default=140, help="longest wait")
    limit = time.monotonic() + parser.parse_args(argv).seconds
    for process in drivers():
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(process, signal.SIGTERM)
    while remaining := drivers():
        if time.monotonic() > limit:
            sys.stderr.write(f"drivers still run: {', '.join(map(str, remaining))}\n")
            return 1
        time.sleep(POLL_S)
    return 0


def drivers() -> list[int]:
    """Process ids of the drivers. Ray's shell around a driver does not count: its command is one word."""
    return sorted(int(folder.name) for folder in PROC.glob("[0-9]*") if _is_driver(folder))


def _is_driver(folder: Path) -> bool:
    try:
        words = (folder / "cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended meanwhile
        return False
    return any(words[index] == b"-m" and words[index + 1] in MODULES for index in range(len(words) - 1))


if __name__ == "__main__":
    sys.exit(main())
