"""Removes the series of ended runs from gauges with the label `run`, so that their number stays bounded."""

import asyncio
from typing import Final

import structlog
from prometheus_client import Gauge

from shared.contracts.events import ENDED_STATES
from shared.contracts.ids import RunId
from shared.errors import Permanent, Transient
from shared.state.runs import RunRecords
from shared.store.port import NotFound, Store

PASS_S: Final = 150.0
"""Seconds between two passes. A series goes in the second one that finds its run ended: after several scrapes."""
log = structlog.get_logger(__name__)


class RunSeries:
    """The gauges of one service that have a series for each run."""

    def __init__(self, *families: Gauge) -> None:
        self._families = families
        self._shown: set[RunId] = set()
        self._ended: set[RunId] = set()

    def show(self, run: RunId) -> None:
        """Note that the run has series. Call it whenever one is set."""
        self._shown.add(run)

    @property
    def shown(self) -> frozenset[RunId]:
        """The runs with series."""
        return frozenset(self._shown)

    async def watch(self, store: Store) -> None:
        """Remove the series of ended runs; never returns."""
        runs = RunRecords(store)
        while True:
            try:
                await self.remove_ended(runs)
            except Transient as error:  # the next pass repeats it
                log.warning("series of ended runs not removed", error=str(error))
            await asyncio.sleep(PASS_S)

    async def remove_ended(self, runs: RunRecords) -> None:
        """One pass."""
        ended = {run for run in list(self._shown) if await _has_ended(runs, run)}
        for run in ended & self._ended:
            for family in self._families:
                family.remove_by_labels({"run": run})
            self._shown.discard(run)
        self._ended = ended


async def _has_ended(runs: RunRecords, run: RunId) -> bool:
    try:
        return (await runs.latest(run)).state in ENDED_STATES
    except NotFound:  # deleted
        return True
    except Permanent:  # the coordinator reports unreadable records
        return False
