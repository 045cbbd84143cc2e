"""Exports on request: chosen segments of a run into a local directory, or a run's steps into one data set."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Self, TypeVar

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
from shared.errors import Permanent
from shared.game.errors import UnknownRom
from shared.game.segment import read_segment
from shared.state.segments import recorded
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import Store

T = TypeVar("T")
Tell = Callable[[str], None]
"""Takes the line about a segment that could not be exported, as soon as that is known."""


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

    def matches(self, place: keys.SegmentPlace) -> bool:
        """Whether a segment of the run is chosen."""
        return self.episode in (None, place.episode) and self.segment in (None, place.segment)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of the chosen segments: what each gave, and the keys of those that could not be exported."""

    done: list[T]
    failed: list[str]


async def export_to(settings: ExporterSettings, chosen: Selection, directory: Path, tell: Tell) -> Outcome[Path]:
    """Replay the chosen segments into `directory/{run}/epoch_N/{episode}/{segment}/`; each gives its folder."""
    store, group = open_store(settings.store), settings.export
    look = Look(frames=group.frames, video=group.video, scale=group.scale, overlay=group.overlay)
    open_game = games(settings.rom.file)
    judged = Scores(store)

    async def export(raw: bytes) -> Path:
        manifest = read_manifest(raw)
        start = EpochStart.from_bytes(await store.get(keys.epoch_start(manifest.run, manifest.epoch)))
        scores = await judged.of(manifest.run, manifest.epoch, manifest.segment)
        export = await asyncio.to_thread(render, raw, open_game(start.config), scores, look)
        folder = _folder(directory, manifest)
        await asyncio.to_thread(write_folder, folder, export.files, export.manifest.to_bytes())
        return folder

    return await _each(store, chosen, export, tell)


async def dataset_to(settings: ExporterSettings, chosen: Selection, path: Path, tell: Tell) -> Outcome[int]:
    """Write the chosen segments as one Parquet file, no file if there are none; each gives its number of steps."""
    store = open_store(settings.store)
    judged = Scores(store)
    with Dataset(path) as dataset:

        async def add(raw: bytes) -> int:
            segment = read_segment(raw)
            manifest = segment.manifest
            scores = await judged.of(manifest.run, manifest.epoch, manifest.segment)
            dataset.add(SegmentData(manifest, segment.observations, segment.actions, scores))
            return len(segment.actions)

        return await _each(store, chosen, add, tell)


async def _each(store: Store, chosen: Selection, work: Callable[[bytes], Awaitable[T]], tell: Tell) -> Outcome[T]:
    """Do it with every chosen archive, in the order of the keys; one that will never do does not hold up the others."""
    outcome: Outcome[T] = Outcome([], [])
    for entry, place in (await recorded(store, chosen.run, chosen.epoch)).items():
        if not chosen.matches(place):
            continue
        try:
            outcome.done.append(await work(await store.get(entry.key)))
        except UnknownRom:
            raise  # the ROM that was given, or none, is wrong for the whole run
        except Permanent as error:
            tell(f"{entry.key}: {error}")
            outcome.failed.append(entry.key)
    return outcome


def _folder(directory: Path, manifest: SegmentManifest) -> Path:
    """Where a segment goes: as in the store, because episodes and segments of two runs have the same ids."""
    return directory / manifest.run / f"epoch_{manifest.epoch}" / manifest.episode / manifest.segment
