"""Processes under test start as in a terminal."""

import signal


def in_a_terminal() -> None:
    """Reset SIGHUP and SIGINT: under `nohup` or in the background, a process would inherit that they are ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
