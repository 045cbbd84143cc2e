"""Ties child processes to this one, and signals to an orderly end.

A supervisor that is killed cannot clean up; on Linux the kernel does it for us. Elsewhere only what can be caught does.
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
    """For a child between fork and exec: get SIGTERM when the parent is gone. Calls nothing but the kernel."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def run_cancellable(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """`asyncio.run`, but SIGTERM ends it like ctrl-C: by cancelling `work`, whose clean-up then runs."""
    return asyncio.run(_cancelled_by_sigterm(work))


async def _cancelled_by_sigterm(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is not None:
        with suppress(NotImplementedError):  # a platform without signals in its event loop
            loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """SIGTERM and a closed terminal end the body like ctrl-C: by KeyboardInterrupt. For work without an event loop."""
    with _handled((signal.SIGTERM, signal.SIGHUP), _interrupt):
        yield


@contextmanager
def defer_signals() -> Iterator[None]:
    """Signals that end a command wait for the end of the body, which starts a process: half started, it has no name by
    which it could be ended, too."""
    came: list[int] = []
    with _handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda number, _: came.append(number)):
        yield
    if came:
        raise KeyboardInterrupt


@contextmanager
def _handled(numbers: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Another handler for these signals during the body.

    Who started us with `nohup` had SIGHUP ignored: the closed terminal is not to end us.
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
