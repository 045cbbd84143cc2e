"""Ends a process that used the store, Ray or an emulator."""

import os
import sys
from contextlib import suppress
from typing import Final, NoReturn

EXIT_TOPOLOGY: Final = 4
"""Exit code of a service whose streams or consumers are missing or differ from the declared ones."""


def flush_and_exit(code: int) -> NoReturn:
    """Flush the output and end this process immediately; the caller has closed its own resources.

    A normal interpreter exit may abort (134) while threads of the store's client run, and exit handlers of Ray and of
    the emulator may hang. The parent would then receive a wrong exit code, or none.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the reader is gone, or the disk is full
            stream.flush()
    os._exit(code)
