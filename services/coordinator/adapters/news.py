"""Finds what is new about one run, by comparing the store with what was seen at the look before."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from services.coordinator.adapters.feed import News
from services.coordinator.adapters.views import Views
from services.coordinator.reporter import Reporter
from shared.contracts.ids import RunId
from shared.contracts.progress import RunProgress
from shared.contracts.run import RunRecord
from shared.errors import ContractError
from shared.state.runs import Runs
from shared.state.scores import ScoreReader
from shared.store import keys
from shared.store.port import Entry, NotFound, Store

AT_ONCE: Final = 50  # scores told in one look; a burst comes in several


@dataclass(slots=True)
class _Told:
    """What one channel was told. It grows only when a look has read everything: what a failed one found comes again."""

    things: dict[tuple[str, str], str] = field(default_factory=dict)
    scores: set[Entry] | None = None  # None before the first look


class Newsroom:
    """Makes a `look` for each run that somebody watches."""

    def __init__(self, store: Store, runs: Runs, views: Views, reporter: Reporter) -> None:
        self._store, self._runs, self._views, self._reporter = store, runs, views, reporter
        self._reader = ScoreReader(store)

    def look(self, run: RunId) -> Callable[[], Awaitable[list[News]]]:
        """A function that tells what is new since it was called before."""
        told = _Told()

        async def look() -> list[News]:
            record = await self._runs.latest(run)
            figures = await self._figures(record)
            found = [news for news in figures if told.things.get((news.kind, news.about)) != news.data]
            past, now = await self._fresh(record, told.scores)
            scores = await self._scores(now)
            told.things.update({(news.kind, news.about): news.data for news in found})
            told.scores = {*(told.scores or ()), *past, *now}
            return found + scores

        return look

    async def _figures(self, record: RunRecord) -> list[News]:
        view = await self._views.read(record)
        news = [News("run", record.model_dump_json())]
        news += [News("epoch", row.model_dump_json(), str(row.epoch)) for row in await self._reporter.rows(view)]
        # There is none before the coordinator's first look at the run, and a damaged one is soon written anew.
        with suppress(NotFound, ContractError):
            progress = RunProgress.from_bytes(await self._store.get(keys.progress(record.run)))
            news.append(News("progress", progress.model_dump_json()))
        return news

    async def _fresh(self, record: RunRecord, told: set[Entry] | None) -> tuple[list[Entry], list[Entry]]:
        """Scores that are never told, and those to tell now, oldest first.

        Whoever comes to a long run wants to see the newest scores, not to wait until thousands of old ones went by.
        """
        found: list[Entry] = []
        for epoch in range(max(0, record.epoch - 1), record.epoch + 1):
            found += await self._reader.listed(record.run, epoch)
        ordered = sorted(found, key=lambda entry: entry.modified)
        if told is None:
            return ordered[:-AT_ONCE], ordered[-AT_ONCE:]
        return [], [entry for entry in ordered if entry not in told][:AT_ONCE]

    async def _scores(self, fresh: list[Entry]) -> list[News]:
        """Their news; the reader says in the log which one is damaged, and it is left out."""
        read = (await self._reader.of(fresh)).items()
        return [News("score", found.scores.model_dump_json(), entry.key) for entry, found in read if found is not None]
