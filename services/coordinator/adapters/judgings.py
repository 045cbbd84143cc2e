"""The judges' own reports on epochs, as they are now.

Judges write them again and again: seconds after the last score, and once more when pairs and canaries end. Nothing says
which one is the last, so a listing tells which have changed, and only those are read.
"""

from datetime import datetime
from typing import Final
from weakref import WeakValueDictionary

import structlog

from shared.contracts.ids import RunId
from shared.contracts.judging import EpochJudging
from shared.contracts.progress import EpochRow
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import Entry, NotFound, Store

SETTLED_S: Final = 5.0  # stores tell times in whole seconds: two reports of one second can look like the same
log = structlog.get_logger(__name__)


class Judgings:
    """Puts the reports into rows. One is remembered for as long as somebody keeps a row that holds it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: WeakValueDictionary[Entry, EpochJudging] = WeakValueDictionary()
        self._refused: set[str] = set()  # told in the log: rows are made every other second

    async def into(self, run: RunId, rows: list[EpochRow], now: datetime) -> list[EpochRow]:
        """The same rows, each with the report on its epoch, or None while there is none."""
        if not rows:
            return []
        listed = {entry.key: entry for entry in await self._store.list(keys.evaluations_prefix(run))}
        return [await self._renewed(row, listed.get(keys.judge_report(run, row.epoch)), now) for row in rows]

    async def _renewed(self, row: EpochRow, entry: Entry | None, now: datetime) -> EpochRow:
        judging = None if entry is None else self._known.get(entry) or await self._read(entry, now)
        return row if judging is row.judging else row.model_copy(update={"judging": judging})

    async def _read(self, entry: Entry, now: datetime) -> EpochJudging | None:
        try:
            judging = EpochJudging.from_bytes(await self._store.get(entry.key))
        except NotFound:
            return None
        except ContractError as error:
            if entry.key not in self._refused:
                log.error("report of the judges refused", key=entry.key, error=str(error))
            self._refused.add(entry.key)
            return None
        if now.timestamp() - entry.modified > SETTLED_S:
            self._known[entry] = judging
        return judging
