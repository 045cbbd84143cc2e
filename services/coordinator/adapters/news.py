"""Finds what is new about one run, by comparing the store with what was seen at the look before."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from services.coordinator.adapters.feed import News
from services.coordinator.adapters.views import Views
from services.coordinator.reporter import Reporter
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.state.runs import Runs
from shared.store import keys
from shared.store.port import NotFound, Store

AT_ONCE: Final = 50  # scores told in one look; a long backlog comes in several


class Newsroom:
    """Makes a `look` for each run that somebody watches."""

    def __init__(self, store: Store, runs: Runs, views: Views, reporter: Reporter) -> None:
        self._store, self._runs, self._views, self._reporter = store, runs, views, reporter

    def look(self, run: RunId) -> Callable[[], Awaitable[list[News]]]:
        """A function that tells what is new since it was called before."""
        seen: dict[tuple[str, str], str] = {}
        scored: set[str] = set()

        async def look() -> list[News]:
            record = await self._runs.latest(run)
            found = [news for news in await self._figures(record) if seen.get((news.kind, news.about)) != news.data]
            seen.update({(news.kind, news.about): news.data for news in found})
            return found + await self._scores(record, scored)

        return look

    async def _figures(self, record: RunRecord) -> list[News]:
        view = await self._views.read(record)
        news = [News("run", record.model_dump_json())]
        news += [News("epoch", row.model_dump_json(), str(row.epoch)) for row in await self._reporter.rows(view)]
        with suppress(NotFound):  # the coordinator has not looked at this run yet
            news.append(News("progress", (await self._store.get(keys.progress(record.run))).decode()))
        return news

    async def _scores(self, record: RunRecord, scored: set[str]) -> list[News]:
        run = record.run
        news: list[News] = []
        for epoch in (record.epoch - 1, record.epoch):
            if epoch < 0:
                continue
            found = await self._store.list(keys.scores_prefix(run, epoch))
            fresh = [entry.key for entry in sorted(found, key=lambda entry: entry.modified) if entry.key not in scored]
            for key in fresh[:AT_ONCE]:
                scored.add(key)
                news.append(News("score", (await self._store.get(key)).decode(), key))
        return news
