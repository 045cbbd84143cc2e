"""The end of a process that used the store, Ray or an emulator."""

import os
import sys
from contextlib import suppress
from typing import NoReturn


def flush_and_exit(code: int) -> NoReturn:
    """End this process at once, with everything written; the caller has closed what is its own.

    The interpreter's own way down may abort (134) while threads of the store's client are on their way, and exit
    handlers of Ray and of the emulator can hang: whoever waits for the code would get another one, or none.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):  # its reader has gone
            stream.flush()
    os._exit(code)
