"""The training process: reads a request as lines from standard input, writes its result to standard output.

`adapters/training_process.py` starts it. It exits when standard input closes, because its parent is gone then.
"""

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import Final

from services.rewardmodel.training.pipeline import run_training
from services.rewardmodel.training_protocol import TrainingRequest, join_request

OOM_SCORE_ADJUSTMENT: Final = "500"  # when memory is short, kill the repeatable training before the service
ORPHANED: Final = 3  # exit code


def main() -> None:
    """Read the request up to the empty line, train, and write the result."""
    with contextlib.suppress(OSError):  # not on every system
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE_ADJUSTMENT)
    request = join_request(map(TrainingRequest.model_validate_json, iter(sys.stdin.buffer.readline, b"\n")))
    threading.Thread(target=_exit_with_parent, args=(sys.stdin.fileno(),), daemon=True).start()
    with contextlib.redirect_stdout(sys.stderr):  # output of libraries must not mix with the result
        result = run_training(request, lambda: False)
    sys.stdout.buffer.write(result.model_dump_json().encode())
    sys.stdout.buffer.flush()
    os._exit(0)  # the thread still blocks on standard input


def _exit_with_parent(stdin: int) -> None:
    # Read the descriptor: the buffered reader's lock would stay held, and a failing training could not exit cleanly.
    while os.read(stdin, 1):
        pass
    os._exit(ORPHANED)


if __name__ == "__main__":
    main()
