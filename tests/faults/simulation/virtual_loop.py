"""An event loop whose time is simulated: it waits for nothing, and the caller decides when time passes.

Everything in it runs in one thread and in a fixed order, so that equal histories take equal courses.
"""

import asyncio
import selectors
from typing import Any, Final

NEVER: Final = float("inf")


class _Selector(selectors.SelectSelector):
    """Counts the cycles of the loop and moves its time instead of waiting. No socket is ever ready."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.until = 0.0
        self.cycles_left = 0.0
        self.loop: asyncio.AbstractEventLoop | None = None

    def select(self, timeout: float | None = None) -> list[Any]:
        self.cycles_left -= 1
        wait = NEVER if timeout is None else timeout
        if self.cycles_left < 0:
            self._stop()
        elif wait > 0:
            if self.now + wait > self.until:  # nothing more happens until then
                self.now = max(self.now, self.until)
                self._stop()
            else:
                self.now += wait
        return []

    def _stop(self) -> None:
        assert self.loop is not None
        self.loop.stop()


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time` is in simulated seconds, from 0."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self._virtual.loop = self

    def time(self) -> float:
        """Simulated seconds."""
        return self._virtual.now

    def run_cycles(self, cycles: float = NEVER) -> None:
        """Run what is ready, at most this many cycles; time stands still."""
        self._run(cycles, self._virtual.now)

    def pass_time(self, seconds: float) -> None:
        """Let time pass and run what becomes due."""
        self._run(NEVER, self._virtual.now + seconds)

    def _run(self, cycles: float, until: float) -> None:
        self._virtual.cycles_left, self._virtual.until = cycles, until
        self.run_forever()
