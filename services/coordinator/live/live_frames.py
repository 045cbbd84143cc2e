"""The live picture of a run for the page: renews the mark that makes an env runner draw, and reads the newest frame."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from services.coordinator.domain.lifecycle import ACTIVE
from shared.contracts.driver import LiveFrame
from shared.contracts.ids import RunId
from shared.errors import ContractError
from shared.process.bounded_cache import BoundedCache
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.port import NotFound, Store

RENEW_S: Final = 3.0  # the trainer stops drawing ten seconds after the last mark
FRESH_S: Final = 0.3  # all viewers of a run share one read
MAX_RUNS: Final = 16


@dataclass(slots=True)
class _WatchedRun:
    """What is known of a run that someone watches. Times are those of the clock."""

    active: bool = False
    renewed: float = float("-inf")
    read: float = float("-inf")
    frame: LiveFrame | None = None
    seen: float = float("-inf")
    """When `frame` changed last."""


class LiveFrames:
    """Frames of the runs that are watched now."""

    def __init__(self, store: Store, runs: RunRecords, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._runs, self._clock = store, runs, clock
        self._watched: BoundedCache[RunId, _WatchedRun] = BoundedCache(MAX_RUNS)

    async def newest(self, run: RunId) -> tuple[LiveFrame | None, float | None]:
        """The newest frame of an active run and the seconds since it came; raises NotFound for an unknown run."""
        one, now = self._watched.get_or_make(run, _WatchedRun), self._clock()
        if now - one.renewed >= RENEW_S:
            one.active = (await self._runs.latest(run)).state in ACTIVE
            one.renewed = now
            if one.active:
                await self._store.put(keys.live_mark(run), secrets.token_hex(8).encode())
        if not one.active:
            return None, None
        if now - one.read >= FRESH_S:
            one.read = now
            frame = await self._read(run)
            if frame != one.frame:
                one.frame, one.seen = frame, now
        return one.frame, None if one.frame is None else max(0.0, now - one.seen)

    async def _read(self, run: RunId) -> LiveFrame | None:
        try:
            return LiveFrame.from_bytes(await self._store.get(keys.live_frame(run)))
        except (NotFound, ContractError):  # none yet, or another version's: the next one replaces it
            return None
