"""Exports on request: chosen segments of a run into a local directory, or a run's steps into one data set."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from services.exporter.adapters.dataset import Dataset, SegmentData
from services.exporter.adapters.folder import write_folder
from services.exporter.adapters.scores import Scores
from services.exporter.render import Look, render
from services.exporter.settings import ExporterSettings
from services.exporter.wiring import games
from shared.contracts.archive import read_manifest
from shared.contracts.epoch import EpochStart
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.contracts.segment import SegmentManifest
from shared.game.segment import read_segment
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import Store


@dataclass(frozen=True, slots=True)
class Selection:
    """Which segments of a run; None means all."""

    run: RunId
    epoch: int | None
    episode: EpisodeId | None
    segment: SegmentId | None

    @classmethod
    def of(cls, run: str, epoch: int | None, episode: str | None, segment: str | None) -> Self:
        """From words of the command line; ValueError says which one is not a name."""
        return cls(RunId(run), epoch, EpisodeId(episode) if episode else None, SegmentId(segment) if segment else None)

    def matches(self, manifest: SegmentManifest) -> bool:
        """Whether a segment is chosen."""
        return (self.episode in (None, manifest.episode)) and (self.segment in (None, manifest.segment))


async def export_to(settings: ExporterSettings, chosen: Selection, directory: Path) -> list[Path]:
    """Replay the chosen segments into `directory/{run}/epoch_N/{episode}/{segment}/` and return those folders."""
    store, group = open_store(settings.store), settings.export
    look = Look(frames=group.frames, video=group.video, scale=group.scale, overlay=group.overlay)
    open_game = games(settings.rom.file)
    judged, written = Scores(store), []
    async for manifest, raw in _archives(store, chosen):
        start = EpochStart.from_bytes(await store.get(keys.epoch_start(manifest.run, manifest.epoch)))
        scores = await judged.of(manifest.run, manifest.epoch, manifest.segment)
        export = await asyncio.to_thread(render, raw, open_game(start.config), scores, look)
        folder = _folder(directory, manifest)
        await asyncio.to_thread(write_folder, folder, export.files, export.manifest.to_bytes())
        written.append(folder)
    return written


async def dataset_to(settings: ExporterSettings, chosen: Selection, path: Path) -> int:
    """Write the chosen segments as one Parquet file and return the number of steps; no file if there are none."""
    store = open_store(settings.store)
    judged = Scores(store)
    with Dataset(path) as dataset:
        async for manifest, raw in _archives(store, chosen):
            segment = read_segment(raw)
            scores = await judged.of(manifest.run, manifest.epoch, manifest.segment)
            dataset.add(SegmentData(manifest, segment.observations, segment.actions, scores))
    return dataset.rows


async def _archives(store: Store, chosen: Selection) -> AsyncIterator[tuple[SegmentManifest, bytes]]:
    """Chosen archives in the order of epoch, episode and segment."""
    for entry in await store.list(keys.segments_prefix(chosen.run, chosen.epoch)):
        name = entry.key.rpartition("/")[2].removesuffix(".zip")
        if chosen.segment is not None and name != chosen.segment:
            continue
        raw = await store.get(entry.key)
        manifest = read_manifest(raw)
        if chosen.matches(manifest):
            yield manifest, raw


def _folder(directory: Path, manifest: SegmentManifest) -> Path:
    """Where a segment goes: as in the store, because episodes and segments of two runs have the same ids."""
    return directory / manifest.run / f"epoch_{manifest.epoch}" / manifest.episode / manifest.segment
