"""Signal handling: stop cleanly on a signal, and stop child processes when this process dies.

A killed supervisor cannot clean up. On Linux the kernel signals its children; elsewhere only catchable signals help.
"""

import asyncio
import ctypes
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

T = TypeVar("T")
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Use as `preexec_fn`: the child receives SIGTERM when its parent dies. Makes one system call and nothing else."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def run_cancellable(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Like `asyncio.run`, but SIGINT, SIGTERM and the end of the terminal cancel `work`, so that its cleanup runs.

    Each further signal cancels what the cleanup waits for at that time. KeyboardInterrupt if `work` ends cancelled.
    """
    return asyncio.run(_cancelled_by_signals(work))


async def _cancelled_by_signals(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is not None:
        with suppress(NotImplementedError):  # the event loop of this platform has no signal handlers
            for number in (signal.SIGINT, signal.SIGTERM, *_end_of_terminal()):
                loop.add_signal_handler(number, task.cancel)
    try:
        return await work()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _end_of_terminal() -> list[signal.Signals]:
    """SIGHUP; nothing under `nohup`, which ignores it."""
    return [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]


@contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP during the body. For work without an event loop."""
    with _handled((signal.SIGTERM, signal.SIGHUP), _interrupt):
        yield


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer SIGINT, SIGTERM and SIGHUP to the end of the body, which starts a process.

    An interrupt between fork and assignment would lose the new process: nothing could stop it.
    """
    received: list[int] = []
    with _handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda number, _: received.append(number)):
        yield
    if received:
        raise KeyboardInterrupt


@contextmanager
def children_ignore_interrupts() -> Iterator[None]:
    """Processes that start during the body ignore ctrl-C, which reaches the whole group: this one has to end them."""
    with _handled((signal.SIGINT,), signal.SIG_IGN):
        yield


@contextmanager
def _handled(
    numbers: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], object] | signal.Handlers
) -> Iterator[None]:
    """Install a handler for these signals during the body.

    Ignored signals stay ignored: under `nohup`, a closed terminal does not stop the command.
    """
    before = {number: signal.getsignal(number) for number in numbers}
    changed = [number for number, former in before.items() if former is not signal.SIG_IGN]
    for number in changed:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, before[number])


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
