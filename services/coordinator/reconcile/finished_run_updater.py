"""Updates the reports of runs that have ended: the judges' last figures arrive when the reconciler has left the run.

It compares with the stored summary and not with memory, so it does not matter which coordinator wrote that.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from services.coordinator.domain.lifecycle import ACTIVE
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.reconcile.report_writer import ReportWriter
from shared.errors import Permanent, Transient

WATCHED: Final = timedelta(minutes=30)
"""After the end of a run. Canaries and late segments of a busy server take minutes; figures after this are lost."""

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
        now = self.now()
        for record in await self.models.runs.all():
            if record.state in ACTIVE or now - record.updated > WATCHED:
                continue
            try:
                await self.reports.update(await self.models.views.read(record))
            except (Transient, Permanent) as error:
                log.warning("reports of an ended run not updated", run=record.run, error=str(error))
