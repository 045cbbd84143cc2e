"""The rows of a run that has ended, from its summary: one document instead of four objects per epoch."""

from typing import Final

from services.coordinator.domain.lifecycle import ACTIVE
from shared.contracts.base import sha256
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow, RunSummary
from shared.contracts.run import RunRecord
from shared.errors import ContractError
from shared.process.bounded_cache import BoundedCache
from shared.store import keys
from shared.store.port import NotFound, Store

MAX_RUNS: Final = 4  # the rows of 300 epochs take about 5 MB


class EndedRows:
    """Reads summaries; one that has not changed is parsed once, so its rows stay the same objects."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: BoundedCache[RunId, tuple[str, RunSummary | None]] = BoundedCache(MAX_RUNS)

    async def read(self, record: RunRecord) -> list[EpochRow] | None:
        """The rows of an ended run; None for an active one, and where the summary is not that of the record's state.

        Rows of earlier versions lack the reasons, so they are computed from the commit objects as well.
        """
        summary = await self._summary(record.run) if record.state not in ACTIVE else None
        if summary is None or (summary.created, summary.state) != (record.created, record.state):
            return None
        return summary.epochs

    async def _summary(self, run: RunId) -> RunSummary | None:
        """The summary of a run, if it explains every epoch."""
        try:
            raw = await self._store.get(keys.run_summary(run))
        except NotFound:
            return None
        digest, known = sha256(raw), self._known.get(run)
        if known is not None and known[0] == digest:  # reading costs milliseconds, parsing a long run's a tenth
            return known[1]
        try:
            summary = RunSummary.from_bytes(raw)
        except ContractError:
            return None
        return self._known.put(run, (digest, summary if all(map(_explained, summary.epochs)) else None))[1]


def _explained(row: EpochRow) -> bool:
    """Whether a row says why its epoch was not shaped, and why its reward model is not used."""
    shaped = row.reward_model is not None or row.not_shaped is not None
    return shaped and (row.reward_model_passed is not False or row.reason is not None)
