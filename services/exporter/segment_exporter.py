"""Exports one segment into the store: replay, files, then the manifest, which is created only if absent."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace

from services.exporter.adapters.orders import EpochOrders
from services.exporter.adapters.potentials import Potentials
from services.exporter.adapters.scores import ScoreLookup
from services.exporter.domain.manifest import MANIFEST, POTENTIAL
from services.exporter.render import RenderedSegment, RenderOptions, render
from shared.contracts.base import sha256
from shared.contracts.events import SegmentExported
from shared.contracts.ids import Digest
from shared.contracts.run import RunConfig
from shared.contracts.scores import SegmentScores
from shared.game.games.game import Game
from shared.game.recording.segment import read_segment
from shared.store import keys
from shared.store.create import create_or_read
from shared.store.keys import SegmentPlace
from shared.store.port import NotFound, Store

DIGITS = 6  # of a potential: a page draws it
PARALLEL_PUTS = 16  # a segment has some 300 pictures: written one by one they take longer than the replay

OpenGame = Callable[[RunConfig], Game]
"""Opens the game of a run's configuration; caches it, so that a user's ROM is read once."""


class SegmentExporter:
    """Exports segments of any run. Knows neither the bus nor the export policy."""

    def __init__(self, store: Store, scores: ScoreLookup, open_game: OpenGame, options: RenderOptions) -> None:
        self._store, self._scores, self._open_game, self._options = store, scores, open_game, options
        self._orders = EpochOrders(store)
        self._potentials = Potentials(store, self._orders)

    async def export(self, place: SegmentPlace, digest: str | None = None) -> SegmentExported:
        """Export the segment unless its export exists, and return its event.

        `digest` is the archive's SHA-256 if an event named one; an archive that differs raises DigestMismatch.
        """
        existing = await self._existing(place)
        if existing is not None:
            return existing
        raw = await self._store.get(keys.segment(*place), digest)
        game = self._open_game((await self._orders.of(place.run, place.epoch)).config)
        scores = await self._scores.segment(place.run, place.epoch, place.segment)
        rendered = await self._with_potential(raw, await self._render(raw, game, scores))
        # Another replica may have finished during the replay: its manifest lists the files that it wrote.
        existing = await self._existing(place)
        return existing if existing is not None else _event(place, await self._write(place, rendered))

    async def _existing(self, place: SegmentPlace) -> SegmentExported | None:
        try:
            return _event(place, await self._store.get(keys.export_prefix(*place) + MANIFEST))
        except NotFound:
            return None

    async def _render(self, raw: bytes, game: Game, scores: SegmentScores | None) -> RenderedSegment:
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(render, raw, game, scores, self._options, cancelled)
        finally:
            cancelled.set()

    async def _with_potential(self, raw: bytes, rendered: RenderedSegment) -> RenderedSegment:
        """Add the potentials as a file; unchanged if nothing shaped the segment or its model expired."""
        if rendered.manifest.segment.reward_model is None:
            return rendered
        potentials = await self._potentials.of(await asyncio.to_thread(read_segment, raw))
        if potentials is None:
            return rendered
        data = json.dumps([round(float(value), DIGITS) for value in potentials]).encode()
        files = {**rendered.manifest.files, POTENTIAL: Digest(sha256(data))}
        manifest = rendered.manifest.model_copy(update={"files": files})
        return replace(rendered, manifest=manifest, files={**rendered.files, POTENTIAL: data})

    async def _write(self, place: SegmentPlace, rendered: RenderedSegment) -> bytes:
        """Write the files, then create the manifest; return the bytes of the committed one."""
        prefix = keys.export_prefix(*place)
        slots = asyncio.Semaphore(PARALLEL_PUTS)

        async def put(name: str, data: bytes) -> None:
            async with slots:
                await self._store.put(prefix + name, data)

        await asyncio.gather(*(put(name, data) for name, data in rendered.files.items()))
        # If another replica committed first, its manifest counts.
        return (await create_or_read(self._store, prefix + MANIFEST, rendered.manifest.to_bytes())).data


def _event(place: SegmentPlace, manifest: bytes) -> SegmentExported:
    key = keys.export_prefix(*place) + MANIFEST
    return SegmentExported(
        run=place.run,
        epoch=place.epoch,
        episode=place.episode,
        segment=place.segment,
        key=key,
        digest=sha256(manifest),
    )
