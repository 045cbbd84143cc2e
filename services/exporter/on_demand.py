"""Exports on demand: selected segments of a run into a local directory, or a run's steps into one Parquet file."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Self, TypeVar

from services.exporter.adapters.directory import replace_directory
from services.exporter.adapters.orders import EpochOrders
from services.exporter.adapters.parquet import ParquetDatasetWriter, SegmentRows
from services.exporter.adapters.potentials import Potentials
from services.exporter.adapters.scores import ScoreLookup
from services.exporter.adapters.video import VideoFile
from services.exporter.render import episode_pictures, render, segment_pictures
from services.exporter.settings import ExporterSettings
from services.exporter.wiring import game_opener, render_options
from shared.contracts.archive import read_manifest
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.contracts.segment import SegmentManifest
from shared.errors import Permanent
from shared.game.errors import UnknownRom
from shared.game.recording.segment import read_segment
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import ObjectEntry, Store

T = TypeVar("T")
ReportFailure = Callable[[str], None]
"""Receives one line per segment that could not be exported, as soon as it fails."""
ReportProgress = Callable[[int, int], None]
"""Receives how many of the selected segments are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class SegmentSelection:
    """Selects segments of a run; None selects all."""

    run: RunId
    epoch: int | None
    episode: EpisodeId | None
    segment: SegmentId | None
    best: int | None = None
    """Only this many segments: those with the highest scores."""
    last_of_episode: bool = False
    """Only the last of the selected segments of each episode."""

    @classmethod
    def parse(
        cls, run: str, epoch: int | None, episode: str | None, segment: str | None, best: int | None = None
    ) -> Self:
        """Parse words of the command line; raise ValueError for a word that is not a valid id."""
        episode_id, segment_id = EpisodeId(episode) if episode else None, SegmentId(segment) if segment else None
        return cls(RunId(run), epoch, episode_id, segment_id, best)

    def includes(self, place: keys.SegmentPlace) -> bool:
        """Whether a segment of the run is selected."""
        return self.episode in (None, place.episode) and self.segment in (None, place.segment)


@dataclass(frozen=True, slots=True)
class ExportResult(Generic[T]):
    """One value per exported segment, and the keys of the segments that could not be exported."""

    exported: list[T]
    failed: list[str]


async def export_segments(
    settings: ExporterSettings,
    selection: SegmentSelection,
    directory: Path,
    report: ReportFailure,
    progress: ReportProgress = lambda done, total: None,
) -> ExportResult[Path]:
    """Replay the selected segments into `directory/{run}/epoch_N/{episode}/{segment}/`; the values are these paths."""
    store = open_store(settings.store)
    scores, orders = ScoreLookup(store), EpochOrders(store)
    options, open_game = render_options(settings.export), game_opener(settings.rom.file)

    async def export(raw: bytes) -> Path:
        manifest = read_manifest(raw)
        start = await orders.of(manifest.run, manifest.epoch)
        segment_scores = await scores.segment(manifest.run, manifest.epoch, manifest.segment)
        rendered = await asyncio.to_thread(render, raw, open_game(start.config), segment_scores, options)
        target = _target(directory, manifest)
        await asyncio.to_thread(replace_directory, target, rendered.files, rendered.manifest.to_bytes())
        return target

    return await _for_each(store, selection, export, report, progress)


async def export_video(
    settings: ExporterSettings,
    selection: SegmentSelection,
    path: Path,
    report: ReportFailure,
    progress: ReportProgress = lambda done, total: None,
    whole_episodes: bool = False,
) -> ExportResult[int]:
    """Replay the selected segments in their order into one MP4; the values are their numbers of steps.

    Steps between two recorded segments are missing, except with `whole_episodes`: then each episode is shown from its
    start to the end of its last selected segment. No file is written if no segment can be replayed.
    """
    store, open_game = open_store(settings.store), game_opener(settings.rom.file)
    orders = EpochOrders(store)
    pictures = episode_pictures if whole_episodes else segment_pictures
    selection = replace(selection, last_of_episode=whole_episodes)

    with VideoFile(path, settings.export.scale) as video:

        async def add(raw: bytes) -> int:
            manifest = read_manifest(raw)
            start = await orders.of(manifest.run, manifest.epoch)
            game = open_game(start.config)
            await asyncio.to_thread(lambda: video.add(pictures(raw, game), manifest.frame_skip))
            return manifest.steps + (manifest.first_step if whole_episodes else 0)

        return await _for_each(store, selection, add, report, progress)


async def export_dataset(
    settings: ExporterSettings,
    selection: SegmentSelection,
    path: Path,
    report: ReportFailure,
    progress: ReportProgress = lambda done, total: None,
) -> ExportResult[int]:
    """Write the selected segments as one Parquet file; the values are their numbers of steps.

    No file is written if no segment can be exported.
    """
    with ParquetDatasetWriter(path) as writer:
        return await export_rows(settings, selection, writer.add, report, progress)


async def export_rows(
    settings: ExporterSettings,
    selection: SegmentSelection,
    write: Callable[[SegmentRows], None],
    report: ReportFailure,
    progress: ReportProgress = lambda done, total: None,
) -> ExportResult[int]:
    """Give the steps of the selected segments to `write`, one segment a call; the values are numbers of steps."""
    store = open_store(settings.store)
    scores, potentials = ScoreLookup(store), Potentials(store, EpochOrders(store))

    async def add(raw: bytes) -> int:
        segment = read_segment(raw)
        manifest = segment.manifest
        segment_scores = await scores.segment(manifest.run, manifest.epoch, manifest.segment)
        states = [json.loads(line) for line in segment.states.splitlines()]
        phi = await potentials.of(segment)
        observed = segment.observations, segment.actions
        write(SegmentRows(manifest, *observed, segment_scores, states, phi, segment.counters))
        return len(segment.actions)

    return await _for_each(store, selection, add, report, progress)


async def _for_each(
    store: Store,
    selection: SegmentSelection,
    work: Callable[[bytes], Awaitable[T]],
    report: ReportFailure,
    progress: ReportProgress,
) -> ExportResult[T]:
    """Process every selected archive by epoch, episode and step. A failing segment is reported; the others proceed."""
    result: ExportResult[T] = ExportResult([], [])
    selected = await _selected(store, selection)
    for number, entry in enumerate(selected):
        progress(number, len(selected))
        try:
            result.exported.append(await work(await store.get(entry.key)))
        except UnknownRom:
            raise  # the ROM is missing or wrong for the whole run
        except Permanent as error:
            report(f"{entry.key}: {error}")
            result.failed.append(entry.key)
    return result


async def _selected(store: Store, selection: SegmentSelection) -> list[ObjectEntry]:
    places = await list_segments(store, selection.run, selection.epoch)
    found = [entry for entry in sorted(places, key=lambda one: _turn(places[one])) if selection.includes(places[entry])]
    if selection.best is not None:
        best = await _best(store, {entry: places[entry] for entry in found}, selection.best)
        found = [entry for entry in found if entry in best]
    if selection.last_of_episode:
        found = list({places[entry].episode: entry for entry in found}.values())
    return found


async def _best(store: Store, places: Mapping[ObjectEntry, keys.SegmentPlace], count: int) -> set[ObjectEntry]:
    """The `count` segments with the highest scores. Segments without a score are left out."""
    scores = ScoreLookup(store)
    rated = []
    for entry, place in places.items():
        score = await scores.segment(place.run, place.epoch, place.segment)
        if score is not None and score.weighted is not None:
            rated.append((score.weighted, entry))
    return {entry for _, entry in sorted(rated, key=lambda one: -one[0])[:count]}


def _turn(place: keys.SegmentPlace) -> tuple[int, int, str, int, str]:
    """Sorts segments by epoch, episode and step. Keys do not: `epoch_10` stands before `epoch_2` in them."""
    return place.epoch, len(place.episode), place.episode, len(place.segment), place.segment


def _target(directory: Path, manifest: SegmentManifest) -> Path:
    """The folder of a segment. It follows the store's layout, because ids of episodes repeat between runs."""
    return directory / manifest.run / f"epoch_{manifest.epoch}" / manifest.episode / manifest.segment
