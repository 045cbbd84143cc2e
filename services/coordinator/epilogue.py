"""The last figures of a run that has ended: nobody visits it any more when its judges close their books.

The tables are compared with what is stored and not with what is remembered, so it does not matter who wrote them.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from services.coordinator.adapters.views import Views
from services.coordinator.domain.lifecycle import ACTIVE
from services.coordinator.reporter import Reporter
from shared.errors import Permanent, Transient
from shared.state.runs import Runs

WATCHED: Final = timedelta(minutes=30)  # after its end; canaries and late segments of a busy server take minutes
EVERY_S: Final = 10.0
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Epilogue:
    """Looks after runs that ended a short while ago. `fence` is not None while this coordinator holds the lease."""

    runs: Runs
    views: Views
    reporter: Reporter
    fence: Callable[[], int | None]
    now: Callable[[], datetime]

    async def walk(self) -> None:
        """Rounds without end."""
        while True:
            await asyncio.sleep(EVERY_S)
            if self.fence() is not None:
                try:
                    await self.round()
                except Transient as error:  # of the list itself: the next round is soon
                    log.warning("runs could not be listed", error=str(error))

    async def round(self) -> None:
        """Amend the tables of each run that ended lately."""
        now = self.now()
        for record in await self.runs.all():
            if record.state in ACTIVE or now - record.updated > WATCHED:
                continue
            try:
                await self.reporter.amend(await self.views.read(record))
            except (Transient, Permanent) as error:
                log.warning("tables of an ended run not amended", run=record.run, error=str(error))
