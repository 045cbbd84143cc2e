"""Exports one segment into the store: replay, files, and the manifest last, created only if it is absent."""

import asyncio
import threading
from collections.abc import Callable

from services.exporter.adapters.scores import Scores
from services.exporter.domain.manifest import MANIFEST
from services.exporter.render import Export, Look, render
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochStart
from shared.contracts.events import SegmentExported
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.contracts.run import RunConfig
from shared.contracts.scores import SegmentScores
from shared.game.roms import Game
from shared.store import keys
from shared.store.create import create_or_read
from shared.store.port import NotFound, Store

PUTS_AT_ONCE = 16  # a segment has some 300 pictures: one by one they would take longer than the replay

OpenGame = Callable[[RunConfig], Game]
"""The game of a run's configuration; building a world is cheap, reading a user's ROM is not done twice."""


class Exporter:
    """Exports segments of any run; knows neither bus nor policy."""

    def __init__(self, store: Store, scores: Scores, open_game: OpenGame, look: Look) -> None:
        self._store, self._scores, self._open_game, self._look = store, scores, open_game, look

    async def exported(self, run: RunId, epoch: int, episode: EpisodeId, segment: SegmentId) -> SegmentExported | None:
        """The event of an export that is complete already, or None."""
        key = keys.export_prefix(run, epoch, episode, segment) + MANIFEST
        try:
            manifest = await self._store.get(key)
        except NotFound:
            return None
        return _event(run, epoch, episode, segment, manifest)

    async def export(
        self, run: RunId, epoch: int, episode: EpisodeId, segment: SegmentId, digest: str | None = None
    ) -> SegmentExported:
        """Export the segment and return its event; `digest` is the archive's, if an event promised one."""
        done = await self.exported(run, epoch, episode, segment)
        if done is not None:
            return done
        raw = await self._store.get(keys.segment(run, epoch, episode, segment), digest)
        game = self._open_game(await self._config(run, epoch))
        scores = await self._scores.of(run, epoch, segment)
        export = await self._rendered(raw, game, scores)
        done = await self.exported(run, epoch, episode, segment)
        if done is not None:  # by another replica meanwhile: its manifest lists the files that it wrote
            return done
        return _event(run, epoch, episode, segment, await self._write(run, epoch, episode, segment, export))

    async def _rendered(self, raw: bytes, game: Game, scores: SegmentScores | None) -> Export:
        given_up = threading.Event()
        try:
            return await asyncio.to_thread(render, raw, game, scores, self._look, given_up)
        finally:
            given_up.set()

    async def _write(self, run: RunId, epoch: int, episode: EpisodeId, segment: SegmentId, export: Export) -> bytes:
        prefix = keys.export_prefix(run, epoch, episode, segment)
        slots = asyncio.Semaphore(PUTS_AT_ONCE)

        async def put(name: str, data: bytes) -> None:
            async with slots:
                await self._store.put(prefix + name, data)

        await asyncio.gather(*(put(name, data) for name, data in export.files.items()))
        # If another replica was faster, its manifest counts.
        return (await create_or_read(self._store, prefix + MANIFEST, export.manifest.to_bytes())).data

    async def _config(self, run: RunId, epoch: int) -> RunConfig:
        return EpochStart.from_bytes(await self._store.get(keys.epoch_start(run, epoch))).config


def _event(run: RunId, epoch: int, episode: EpisodeId, segment: SegmentId, manifest: bytes) -> SegmentExported:
    key = keys.export_prefix(run, epoch, episode, segment) + MANIFEST
    return SegmentExported(run=run, epoch=epoch, episode=episode, segment=segment, key=key, digest=sha256(manifest))
