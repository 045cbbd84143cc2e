"""From a recorded segment to files that a person opens: exact, complete, once, and by the policy asked for."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from services.exporter.adapters.scores import Scores
from services.exporter.domain.manifest import ExportManifest
from services.exporter.domain.policy import ExportPolicy
from services.exporter.export import Exporter
from services.exporter.handlers import Handlers
from services.exporter.render import Look
from services.exporter.request import Selection, dataset_to, export_to
from services.exporter.settings import ExporterSettings
from services.exporter.wiring import games
from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.epoch import EpochStart
from shared.contracts.events import ScoresReady, SegmentReady
from shared.contracts.ids import Digest, RunId
from shared.contracts.scores import DimensionScore, JudgeResult, SegmentScores
from shared.errors import Permanent
from shared.game.errors import ReplayMismatch
from shared.game.segment import Members, pack_state, read_segment, write_segment
from shared.runtime.settings import StoreSettings
from shared.store import keys
from shared.store.object_store import local_store
from shared.store.port import Store
from tests.unit.exporter.played import CONFIG, RUN, record

SMALL = Look(scale=1)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an order to play and two segments played."""
    directory = tmp_path_factory.mktemp("store")
    record(directory)
    start = EpochStart(run=RUN, epoch=0, fence=1, config=CONFIG, created=datetime.now(UTC))
    asyncio.run(local_store(directory).create(keys.epoch_start(RUN, 0), start.to_bytes()))
    return directory


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> Store:
    """A fresh copy of that store."""

    async def copy() -> Store:
        source, target = local_store(recorded), local_store(tmp_path)
        for entry in [*await source.list("episodes/"), *await source.list("models/")]:
            await target.put(entry.key, await source.get(entry.key))
        return target

    return asyncio.run(copy())


async def ready(store: Store, number: int = 0) -> Envelope:
    """`segment.ready` of a recorded segment."""
    entry = (await store.list(keys.segments_prefix(RUN, 0)))[number]
    raw = await store.get(entry.key)
    manifest = read_segment(raw).manifest
    data = SegmentReady(
        run=RUN, epoch=0, key=entry.key, digest=Digest(sha256(raw)), episode=manifest.episode, segment=manifest.segment
    )
    return wrap(data, source="trainer")


async def judged(store: Store, value: int, number: int = 0) -> Envelope:
    """`scores.ready` of a recorded segment on which all votes were `value`."""
    data = (await ready(store, number)).data
    assert isinstance(data, SegmentReady)
    votes = DimensionScore(votes=[value] * 3, value=value / 5, unanimous=True, spread=0)
    result = JudgeResult(
        judge="state", route="r", model="m", prompt="0" * 64, status="judged", dimensions={"progress": votes}
    )
    scores = SegmentScores(
        run=RUN, epoch=0, episode=data.episode, segment=data.segment, segment_key=data.key,
        segment_digest=data.digest, rubric="default", status="judged", judges=[result], weighted=value / 5,
        created=datetime.now(UTC),
    )  # fmt: skip
    key = keys.score(RUN, 0, data.segment)
    digest = Digest(await store.put(key, scores.to_bytes()))
    return wrap(
        ScoresReady(run=RUN, epoch=0, key=key, digest=digest, segment=data.segment, status="judged"), source="judge"
    )


def parts(raw: bytes) -> tuple[dict[str, Any], Members]:
    """A recorded segment taken apart, to be put together with another fact."""
    segment = read_segment(raw)
    members = Members(
        segment.states.splitlines(), segment.observations, segment.actions, segment.prefix,
        pack_state(segment.start_state), segment.frames,
    )  # fmt: skip
    return segment.manifest.model_dump(exclude={"members"}), members


def handlers(store: Store, policy: ExportPolicy = ExportPolicy.ALL, top_k: int = 1) -> Handlers:
    scores = Scores(store)
    return Handlers(store, scores, Exporter(store, scores, games(None), SMALL), policy, top_k)


async def test_an_export_has_every_step_as_picture_and_lists_what_it_wrote(store: Store) -> None:
    (event,) = await handlers(store).handle(await ready(store))
    prefix = event.data.key.removesuffix("manifest.json")
    manifest = json.loads(await store.get(event.data.key, event.data.digest))
    assert manifest["segment"]["run"] == "walk"
    for name, digest in manifest["files"].items():
        await store.get(prefix + name, digest)
    names = [name for name in manifest["files"] if name.startswith("frames/")]
    assert len(names) == manifest["frames"] >= manifest["segment"]["steps"]
    with Image.open(io.BytesIO(await store.get(prefix + names[-1]))) as picture:
        assert (picture.mode, picture.size) == ("P", (160, 144))
    states = (await store.get(prefix + "states.jsonl")).decode().splitlines()
    assert len(states) >= manifest["segment"]["steps"]


async def test_pictures_are_the_key_frames_that_the_judges_saw(store: Store) -> None:
    event = await ready(store, number=1)
    segment = read_segment(await store.get(event.data.key))
    (done,) = await handlers(store).handle(event)
    prefix = done.data.key.removesuffix("manifest.json")
    step = segment.manifest.key_frames[-1]
    with (
        Image.open(io.BytesIO(segment.frames[step])) as seen,
        Image.open(io.BytesIO(await store.get(f"{prefix}frames/frame_{step:06d}.png"))) as exported,
    ):
        assert np.array_equal(np.asarray(seen.convert("RGB")), np.asarray(exported.convert("RGB")))


async def test_a_repeated_event_announces_the_same_export_again(store: Store) -> None:
    event = await ready(store)
    first, second = await handlers(store).handle(event), await handlers(store).handle(event)
    assert [e.id for e in first] == [e.id for e in second]


async def test_a_segment_that_replays_to_another_end_is_refused_with_both_hashes(store: Store) -> None:
    event = await ready(store)
    facts, members = parts(await store.get(event.data.key))
    digest = await store.put(event.data.key, write_segment({**facts, "ram_end": "f" * 64}, members))
    forged = wrap(event.data.model_copy(update={"digest": Digest(digest)}), source="trainer")
    with pytest.raises(ReplayMismatch) as refusal:
        await handlers(store).handle(forged)
    assert isinstance(refusal.value, Permanent)
    assert "f" * 64 in str(refusal.value)
    assert facts["ram_end"] in str(refusal.value)
    assert await store.list("episodes/exports/") == []


Case = tuple[ExportPolicy, Callable[[Store], Awaitable[Envelope]], bool]


@pytest.mark.parametrize(
    ("policy", "event", "exports"),
    [
        (ExportPolicy.NONE, ready, False),
        (ExportPolicy.ALL, ready, True),
        (ExportPolicy.MILESTONES, ready, False),  # a short random walk reaches none
        (ExportPolicy.JUDGED, ready, False),
        (ExportPolicy.JUDGED, lambda store: judged(store, 1), True),
        (ExportPolicy.ALL, lambda store: judged(store, 1), False),  # it was exported when it was recorded
    ],
)
async def test_the_policy_decides(
    store: Store, policy: ExportPolicy, event: Callable[[Store], Awaitable[Envelope]], exports: bool
) -> None:
    assert bool(await handlers(store, policy).handle(await event(store))) == exports


async def test_of_the_best_k_only_those_are_exported_that_are_among_them_when_judged(store: Store) -> None:
    top = handlers(store, ExportPolicy.TOP, top_k=1)
    assert await top.handle(await judged(store, 4, number=0))
    assert not await top.handle(await judged(store, 2, number=1))
    assert await top.handle(await judged(store, 5, number=1))


async def test_a_score_that_cannot_be_read_does_not_hold_up_other_exports(store: Store) -> None:
    top = handlers(store, ExportPolicy.TOP, top_k=1)
    unreadable = await judged(store, 5, number=0)
    await store.put(unreadable.data.key, b"{")
    assert await top.handle(await judged(store, 2, number=1))


async def test_a_dimension_that_two_judges_rated_counts_by_their_mean(store: Store, tmp_path: Path) -> None:
    event = await judged(store, 5, number=0)
    scores = SegmentScores.from_bytes(await store.get(event.data.key))
    low = DimensionScore(votes=[1] * 3, value=0.2, unanimous=True, spread=0)
    second = scores.judges[0].model_copy(update={"judge": "puzzle", "dimensions": {"progress": low}})
    both = scores.model_copy(update={"judges": [*scores.judges, second]})
    await store.put(event.data.key, both.to_bytes())
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"))
    await dataset_to(settings, Selection.of("walk", None, None, scores.segment), tmp_path / "walk.parquet")
    values = pq.read_table(tmp_path / "walk.parquet")["score_progress"].to_pylist()
    assert values == pytest.approx([0.6] * 60)


async def test_on_request_files_and_data_set_land_in_a_directory(store: Store, tmp_path: Path) -> None:
    await judged(store, 3, number=0)
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"), export={"scale": 1})
    folders = await export_to(settings, Selection.of("walk", 0, None, None), tmp_path / "out")
    assert len(folders) == 2
    assert all((folder / "video.mp4").stat().st_size > 1000 for folder in folders)
    rows = await dataset_to(settings, Selection.of("walk", None, None, None), tmp_path / "walk.parquet")
    table = pq.read_table(tmp_path / "walk.parquet")
    assert table.num_rows == rows == 120
    assert len(table["observation"][0]) == 128
    scores = table["score"].to_pylist()
    assert scores[:60] == pytest.approx([0.6] * 60)
    assert scores[60:] == [None] * 60
    assert table["next_observation"][0] == table["observation"][1]


async def test_two_runs_exported_into_one_directory_stand_beside_each_other(store: Store, tmp_path: Path) -> None:
    other = RunId("walk-b")  # its segments have the same ids: the order of play gives them, not the run
    start = EpochStart.from_bytes(await store.get(keys.epoch_start(RUN, 0)))
    await store.put(keys.epoch_start(other, 0), start.model_copy(update={"run": other}).to_bytes())
    for entry in await store.list(keys.segments_prefix(RUN)):
        facts, members = parts(await store.get(entry.key))
        key = keys.segments_prefix(other) + entry.key.removeprefix(keys.segments_prefix(RUN))
        await store.put(key, write_segment({**facts, "run": other}, members))
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"), export={"scale": 1, "frames": False})
    first = await export_to(settings, Selection.of(RUN, None, None, None), tmp_path / "out")
    second = await export_to(settings, Selection.of(other, None, None, None), tmp_path / "out")
    for run, folders in ((RUN, first), (other, second)):
        assert len(folders) == 2
        for folder in folders:
            manifest = ExportManifest.from_bytes((folder / "manifest.json").read_bytes()).segment
            assert manifest.run == run
            place = f"episodes/exports/{folder.relative_to(tmp_path / 'out')}/"
            assert place == keys.export_prefix(run, 0, manifest.episode, manifest.segment)


def test_a_word_that_is_no_name_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ValueError, match="is not a RunId"):
        Selection.of("../secrets", None, None, None)
