"""Exports follow the play: epoch after epoch, and in each row the place that the step led to."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from services.exporter.adapters.parquet import SegmentRows
from services.exporter.on_demand import SegmentSelection, export_dataset, export_rows
from services.exporter.settings import ExporterSettings
from shared.config.settings import StoreSettings
from shared.contracts.ids import EpisodeId, SegmentId
from shared.game.recording.segment import write_segment
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import Store
from tests.unit.exporter.recorded_play import RUN, parts
from tests.unit.exporter.test_parquet import judged_by

WIDTH = 160  # pixels of a room of the garden


async def exported(directory: Path, path: Path) -> list[dict[str, Any]]:
    """The rows of the run's data set."""
    settings = ExporterSettings(store=StoreSettings(url=f"file://{directory}"))
    await export_dataset(settings, SegmentSelection(RUN, None, None, None), path, lambda line: None)
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


async def copy_into_epoch(store: Store, epoch: int) -> None:
    """Record the play of epoch 0 again, as that of another epoch."""
    for entry in await list_segments(store, RUN, 0):
        facts, members = parts(await store.get(entry.key))
        names = {
            "episode": facts["episode"].replace("e0000", f"e{epoch:04d}"),
            "segment": facts["segment"].replace("e0000", f"e{epoch:04d}"),
        }
        raw = write_segment({**facts, **names, "epoch": epoch}, members)
        place = EpisodeId(names["episode"]), SegmentId(names["segment"])
        await store.create(keys.segment(RUN, epoch, *place), raw)


async def test_epoch_2_comes_before_epoch_10(store: Store, tmp_path: Path) -> None:
    for epoch in (2, 10):
        await copy_into_epoch(store, epoch)
    rows = await exported(tmp_path, tmp_path / "out.parquet")
    played = [(row["epoch"], row["episode"], row["step"]) for row in rows]
    assert {epoch for epoch, _, _ in played} == {0, 2, 10}
    assert played == sorted(played)


@pytest.mark.parametrize(
    ("best", "shown"),
    [(1, [(0, 60)]), (2, [(0, 60), (2, 120)]), (3, [(0, 120), (2, 120)]), (None, [(0, 120), (2, 120)])],
)
async def test_whole_episodes_are_those_of_the_best_segments(
    store: Store, tmp_path: Path, best: int | None, shown: list[tuple[int, int]]
) -> None:
    """Each whole episode ends with its last segment among the best: not every last segment is one of them."""
    await copy_into_epoch(store, 2)
    await score(store, 0, (0.9, 0.3))
    await score(store, 2, (0.1, 0.5))
    settings, rows = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}")), list[SegmentRows]()
    selection = SegmentSelection(RUN, None, None, None, best, last_of_episode=True)
    await export_rows(settings, selection, rows.append, pytest.fail)
    assert [(row.manifest.epoch, row.manifest.first_step + row.manifest.steps) for row in rows] == shown


async def score(store: Store, epoch: int, values: Sequence[float]) -> None:
    """Judge the segments of an epoch, in the order of play."""
    places = sorted((await list_segments(store, RUN, epoch)).values(), key=lambda place: place.segment)
    for place, value in zip(places, values, strict=True):
        scores = judged_by([[5]]).model_copy(update={**place._asdict(), "weighted": value})
        await store.create(keys.score(RUN, epoch, place.segment), scores.to_bytes())


@pytest.mark.usefixtures("store")
async def test_the_place_of_a_row_is_the_one_after_its_step(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    rows = await exported(tmp_path, path)
    about = pq.read_schema(path).metadata
    column = json.loads(about[b"features"]).index("x")
    seen = np.array([row["next_observation"][column] for row in rows])
    assert np.allclose((seen + 1) * WIDTH / 2, [row["x"] for row in rows])
    assert about[b"place"].endswith(b"say where the hero is after the step")
    assert about[b"observation"].startswith(b"what was seen before the step")
