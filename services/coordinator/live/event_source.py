"""Finds the updates of one run: each poll compares the store with what the polls before it returned."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from services.coordinator.live.broadcaster import Poll, RunUpdate
from services.coordinator.readmodels.read_models import ReadModels
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow
from shared.contracts.run import RunRecord
from shared.errors import ContractError
from shared.store.port import ObjectEntry

MAX_SCORES: Final = 50  # in one poll; a burst takes several


@dataclass(slots=True)
class _Sent:
    """What one channel got. It changes only after a complete poll: the next one finds again what a failed one found."""

    documents: dict[tuple[str, str], str] = field(default_factory=dict)
    rows: dict[int, EpochRow] = field(default_factory=dict)
    scores: set[ObjectEntry] | None = None  # None before the first poll


class RunEventSource:
    """Makes the poll of each watched run."""

    def __init__(self, models: ReadModels) -> None:
        self._models = models

    def poller(self, run: RunId) -> Poll:
        """A function that returns the updates since its last call."""
        sent = _Sent()

        async def poll() -> list[RunUpdate]:
            record = await self._models.runs.latest(run)
            rows = await self._models.epochs(record)
            # Rows of complete epochs stay the same objects: only others are written as JSON and compared.
            new_rows = {row.epoch: row for row in rows if row is not sent.rows.get(row.epoch)}
            documents = await self._documents(record, new_rows.values())
            changed = [update for update in documents if sent.documents.get(update.key) != update.data]
            skipped, new = await self._new_scores(record, sent.scores)
            scores = await self._score_updates(new)
            sent.documents.update({update.key: update.data for update in changed})
            sent.rows |= new_rows
            sent.scores = {*(sent.scores or ()), *skipped, *new}
            return changed + scores

        return poll

    async def _documents(self, record: RunRecord, rows: Iterable[EpochRow]) -> list[RunUpdate]:
        updates = [RunUpdate("run", record.model_dump_json())]
        updates += [RunUpdate("epoch", row.model_dump_json(), str(row.epoch)) for row in rows]
        # The next pass of the reconciler overwrites a damaged one.
        with suppress(ContractError):
            progress = await self._models.progress(record.run)
            updates += [RunUpdate("progress", progress.model_dump_json())] if progress else []
        return updates

    async def _new_scores(
        self, record: RunRecord, sent: set[ObjectEntry] | None
    ) -> tuple[list[ObjectEntry], list[ObjectEntry]]:
        """Score objects to skip, and those to send now, oldest first.

        The first poll skips all but the newest: a reader of a long run must not wait for thousands of old scores.
        """
        found: list[ObjectEntry] = []
        for epoch in range(max(0, record.epoch - 1), record.epoch + 1):
            found += await self._models.scores.list_epoch(record.run, epoch)
        ordered = sorted(found, key=lambda entry: entry.modified)
        if sent is None:
            return ordered[:-MAX_SCORES], ordered[-MAX_SCORES:]
        return [], [entry for entry in ordered if entry not in sent][:MAX_SCORES]

    async def _score_updates(self, entries: list[ObjectEntry]) -> list[RunUpdate]:
        """The updates of the readable scores among these."""
        readable = await self._models.scores.read_all(entries)
        return [RunUpdate("score", scores.model_dump_json(), scores.segment) for scores in readable]
