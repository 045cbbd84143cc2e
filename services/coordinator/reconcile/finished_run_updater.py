"""Updates the reports of runs that have ended: the judges' last figures arrive when the reconciler has left the run.

It compares with the stored summary and not with memory, so it does not matter which coordinator wrote that.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from services.coordinator.domain.lifecycle import ACTIVE
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.reconcile.report_writer import ReportWriter
from shared.contracts.ids import RunId
from shared.errors import Fatal, Transient, ZeldaError
from shared.store.port import NotFound

INTERVAL_S: Final = 10.0
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class FinishedRunUpdater:
    """Watches runs that ended recently. `fence` returns None while this coordinator lacks the lease."""

    models: ReadModels
    reports: ReportWriter
    fence: Callable[[], int | None]
    now: Callable[[], datetime]

    async def run(self) -> None:
        """Update all runs every INTERVAL_S; never returns."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            if self.fence() is not None:
                try:
                    await self.update_all()
                except Transient as error:  # the list itself failed; the next pass retries
                    log.warning("runs not listed", error=str(error))

    async def update_all(self) -> None:
        """Update the reports of each run that ended recently. A failing run is logged; other runs proceed."""
        fence, now = self.fence(), self.now()
        if fence is None:
            return
        await self.models.known.refresh(fence, now)
        for record in self.models.known.ended_recently(now):
            try:
                await self._update(record.run)
            except Fatal:
                raise
            except Exception as error:  # any error: one run must not stop those after it
                log.warning(
                    "reports of an ended run not updated",
                    run=record.run,
                    error=str(error),
                    exc_info=not isinstance(error, ZeldaError),
                )

    async def _update(self, run: RunId) -> None:
        try:
            record = await self.models.runs.latest(run)
        except NotFound:  # it was deleted, perhaps through another coordinator
            self.models.known.forget(run)
            return
        self.models.known.observe(record)
        if record.state not in ACTIVE:
            await self.reports.update(await self.models.views.read(record))
