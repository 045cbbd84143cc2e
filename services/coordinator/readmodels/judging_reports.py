"""The judges' reports on epochs.

The judges overwrite a report: seconds after the last score, and again when pairs and canaries end. No report is marked
as the last one, so a listing shows which have changed, and only those are read.
"""

from datetime import datetime
from typing import Final
from weakref import WeakValueDictionary

import structlog

from shared.contracts.ids import RunId
from shared.contracts.judging.epoch_report import EpochJudging
from shared.contracts.progress import EpochRow
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, ObjectEntry, Store
from shared.telemetry.log_once import LogOnce

SETTLED_S: Final = 5.0
"""Younger reports are not cached: stores give times in whole seconds, so two reports can have equal entries."""
log = structlog.get_logger(__name__)


class JudgingReports:
    """Adds the reports to rows. A report stays cached while a row that holds it is alive."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: WeakValueDictionary[ObjectEntry, EpochJudging] = WeakValueDictionary()
        self._problems: LogOnce[str] = LogOnce(log.error, "judging report refused")

    async def add_to(self, run: RunId, rows: list[EpochRow], now: datetime) -> list[EpochRow]:
        """The same rows, each with the report on its epoch, or None before the first report."""
        if not rows:
            return []
        listed = {entry.key: entry for entry in await self._store.list(keys.evaluations_prefix(run))}
        return [await self._updated(row, listed.get(keys.judge_report(run, row.epoch)), now) for row in rows]

    async def _updated(self, row: EpochRow, entry: ObjectEntry | None, now: datetime) -> EpochRow:
        report = None if entry is None else self._known.get(entry) or await self._read(entry, now)
        return row if report is row.judging else row.model_copy(update={"judging": report})

    async def _read(self, entry: ObjectEntry, now: datetime) -> EpochJudging | None:
        try:
            report = EpochJudging.from_bytes(await self._store.get(entry.key))
        except NotFound:
            return None
        except ContractError as error:
            self._problems.report(entry.key, error, key=entry.key)
            return None
        if now.timestamp() - entry.modified > SETTLED_S:
            self._known[entry] = report
        return report
