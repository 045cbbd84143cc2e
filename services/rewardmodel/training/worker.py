"""A training as a process of its own: an request as lines on standard input, its result on standard output.

Started by `adapters/child.py`. It ends when standard input is closed: then whoever ordered is gone.
"""

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import Final

from services.rewardmodel.training.pipeline import run_training
from services.rewardmodel.training_protocol import TrainingRequest, join_request

FIRST_TO_GO: Final = "500"  # when memory is short: a training can be repeated, the service should live on
ORPHANED: Final = 3  # exit code


def main() -> None:
    """Read up to the empty line, train, answer."""
    with contextlib.suppress(OSError):  # not on every system
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO)
    request = join_request(map(TrainingRequest.model_validate_json, iter(sys.stdin.buffer.readline, b"\n")))
    threading.Thread(target=_end_with, args=(sys.stdin.fileno(),), daemon=True).start()
    with contextlib.redirect_stdout(sys.stderr):  # whatever a library prints is not part of the answer
        result = run_training(request, lambda: False)
    sys.stdout.buffer.write(result.model_dump_json().encode())
    sys.stdout.buffer.flush()
    os._exit(0)  # the thread still waits for standard input


def _end_with(parent: int) -> None:
    # Not by the buffered reader: its lock would be held for ever, and a failing training could not end properly.
    while os.read(parent, 1):
        pass
    os._exit(ORPHANED)


if __name__ == "__main__":
    main()
