"""From a recorded segment to exported files: exact, complete, once, and by the export policy."""

import asyncio
import io
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from bramble.registration import bramble_game
from services.exporter import segment_exporter
from services.exporter.adapters.scores import ScoreLookup
from services.exporter.domain.policy import ExportPolicy
from services.exporter.handlers import Handlers
from services.exporter.on_demand import SegmentSelection, export_dataset
from services.exporter.render import RenderedSegment, RenderOptions, render
from services.exporter.segment_exporter import SegmentExporter
from services.exporter.settings import ExporterSettings
from services.exporter.wiring import game_opener
from shared.config.settings import StoreSettings
from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ExportRequested, ScoresReady, SegmentReady
from shared.contracts.ids import Digest
from shared.contracts.scores import DimensionScore, JudgeResult, SegmentScores
from shared.errors import DigestMismatch, Permanent, Transient
from shared.game.emulator.emulator import Emulator
from shared.game.errors import ReplayMismatch
from shared.game.recording.segment import read_segment, write_segment
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import Store
from tests.unit.exporter.recorded_play import CONFIG, RUN, parts

SMALL = RenderOptions(scale=1)


async def ready(store: Store, number: int = 0) -> Envelope:
    """`segment.ready` of a recorded segment."""
    entry = list(await list_segments(store, RUN, 0))[number]
    raw = await store.get(entry.key)
    manifest = read_segment(raw).manifest
    data = SegmentReady(
        run=RUN, epoch=0, key=entry.key, digest=Digest(sha256(raw)), episode=manifest.episode, segment=manifest.segment
    )
    return wrap(data, source="trainer")


async def requested(store: Store) -> Envelope:
    """`export.requested` of a recorded segment."""
    return wrap(ExportRequested.model_validate((await ready(store)).data.model_dump()), source="coordinator")


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


async def with_milestone(store: Store) -> Envelope:
    """`segment.ready` of a segment whose manifest claims a milestone."""
    event = await ready(store)
    facts, members = parts(await store.get(event.data.key))
    digest = await store.put(event.data.key, write_segment({**facts, "milestones_end": 1}, members))
    return wrap(event.data.model_copy(update={"digest": Digest(digest)}), source="trainer")


async def abstained(store: Store) -> Envelope:
    """`scores.ready` of a recorded segment from which the judges abstained."""
    event = await judged(store, 5)
    scores = SegmentScores.from_bytes(await store.get(event.data.key))
    nothing = scores.model_copy(update={"status": "abstained", "judges": [], "weighted": None})
    digest = Digest(await store.put(event.data.key, nothing.to_bytes()))
    return wrap(event.data.model_copy(update={"digest": digest, "status": "abstained"}), source="judge")


def handlers(
    store: Store, policy: ExportPolicy = ExportPolicy.ALL, top_k: int = 1, options: RenderOptions = SMALL
) -> Handlers:
    scores = ScoreLookup(store)
    return Handlers(store, scores, SegmentExporter(store, scores, game_opener(None), options), policy, top_k)


async def test_an_export_has_a_picture_per_step_and_lists_its_files(store: Store) -> None:
    recorded = await ready(store)
    (event,) = await handlers(store).handle(recorded)
    prefix = event.data.key.removesuffix("manifest.json")
    manifest = json.loads(await store.get(event.data.key, event.data.digest))
    assert (manifest["segment"]["run"], manifest["archive"]) == ("walk", recorded.data.digest)
    for name, digest in manifest["files"].items():
        await store.get(prefix + name, digest)
    names = [name for name in manifest["files"] if name.startswith("frames/")]
    assert len(names) == manifest["frames"] >= manifest["segment"]["steps"]
    with Image.open(io.BytesIO(await store.get(prefix + names[-1]))) as picture:
        assert (picture.mode, picture.size) == ("P", (160, 144))
    states = (await store.get(prefix + "states.jsonl")).decode().splitlines()
    assert len(states) >= manifest["segment"]["steps"]


async def test_exported_pictures_equal_the_recorded_key_frames(store: Store) -> None:
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


async def test_a_repeated_event_announces_the_export_without_a_replay(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = (await ready(store)).model_copy(update={"fence": 7})
    (first,) = await handlers(store).handle(event)
    monkeypatch.setattr(segment_exporter, "render", pytest.fail)
    (second,) = await handlers(store).handle(event)
    assert second.id == first.id
    assert second.fence == first.fence == 7


async def test_pictures_video_and_caption_are_optional(store: Store) -> None:
    bare = RenderOptions(frames=False, video=False, overlay=False)
    (event,) = await handlers(store, options=bare).handle(await ready(store))
    manifest = json.loads(await store.get(event.data.key))
    names = ["states.jsonl", "step_0.state"]
    assert (list(manifest["files"]), manifest["frames"], manifest["caption"]) == (names, 0, [])


async def test_the_exported_state_is_that_of_the_segments_start(store: Store) -> None:
    event = await ready(store, number=1)  # it begins 60 steps after the state in its archive
    segment = read_segment(await store.get(event.data.key))
    (done,) = await handlers(store).handle(event)
    emulator = Emulator(bramble_game("garden", "normal", 3))
    emulator.load(await store.get(done.data.key.replace("manifest.json", "step_0.state")))
    assert emulator.ram_hash() == segment.manifest.ram_start
    emulator.close()


@pytest.mark.parametrize("event", [ready, lambda store: judged(store, 5)])
async def test_a_segment_changed_after_its_event_is_not_exported(
    store: Store, event: Callable[[Store], Awaitable[Envelope]]
) -> None:
    policy = ExportPolicy.ALL if event is ready else ExportPolicy.JUDGED
    announced = await event(store)
    await with_milestone(store)
    with pytest.raises(DigestMismatch):
        await handlers(store, policy).handle(announced)


async def test_an_export_committed_during_the_replay_is_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    event = await ready(store)

    async def other() -> None:
        await judged(store, 5)  # changes the video's caption
        await handlers(store).handle(event)

    def slow(*order: Any) -> RenderedSegment:
        monkeypatch.setattr(segment_exporter, "render", render)
        asyncio.run(other())
        return render(*order)

    monkeypatch.setattr(segment_exporter, "render", slow)
    (done,) = await handlers(store).handle(event)
    manifest = json.loads(await store.get(done.data.key, done.data.digest))
    assert "judged 1.00" in manifest["caption"][-1]
    for name, digest in manifest["files"].items():
        await store.get(done.data.key.removesuffix("manifest.json") + name, digest)


async def test_of_two_simultaneous_exports_the_first_manifest_is_announced(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = store.create

    async def second(key: str, data: bytes) -> str:
        await create(key, data.replace(b"steps 0-59", b"steps ?-??"))
        return await create(key, data)

    monkeypatch.setattr(store, "create", second)
    (done,) = await handlers(store).handle(await ready(store))
    assert b"steps ?-??" in await store.get(done.data.key, done.data.digest)


async def test_a_cancelled_export_ends_its_replay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that continues would delay the service's exit and the next attempt."""
    event, steps, step = await ready(store), 0, Emulator.step

    def slow(emulator: Emulator, *order: Any, **options: Any) -> None:
        nonlocal steps
        steps += 1
        time.sleep(0.01)
        step(emulator, *order, **options)

    monkeypatch.setattr(Emulator, "step", slow)
    exporting = asyncio.create_task(handlers(store).handle(event))
    while steps == 0:  # noqa: ASYNC110 - a thread has no event to offer
        await asyncio.sleep(0.005)
    exporting.cancel()
    await asyncio.wait([exporting])
    await asyncio.sleep(0.05)
    until_now = steps
    await asyncio.sleep(0.2)
    assert (exporting.cancelled(), steps) == (True, until_now)


@pytest.mark.parametrize("options", [SMALL, RenderOptions(frames=False, video=False, overlay=False)])
async def test_a_replay_mismatch_is_rejected_with_both_hashes(store: Store, options: RenderOptions) -> None:
    event = await ready(store)
    facts, members = parts(await store.get(event.data.key))
    digest = await store.put(event.data.key, write_segment({**facts, "ram_end": "f" * 64}, members))
    forged = wrap(event.data.model_copy(update={"digest": Digest(digest)}), source="trainer")
    with pytest.raises(ReplayMismatch) as refusal:
        await handlers(store, options=options).handle(forged)
    assert isinstance(refusal.value, Permanent)
    assert "f" * 64 in str(refusal.value)
    assert facts["ram_end"] in str(refusal.value)
    assert await store.list("episodes/exports/") == []


@pytest.mark.parametrize(
    ("policy", "event", "exports"),
    [
        (ExportPolicy.NONE, ready, False),
        (ExportPolicy.NONE, requested, True),
        (ExportPolicy.ALL, ready, True),
        (ExportPolicy.MILESTONES, ready, False),  # a short random walk reaches none
        (ExportPolicy.MILESTONES, with_milestone, True),
        (ExportPolicy.MILESTONES, lambda store: judged(store, 5), False),
        (ExportPolicy.JUDGED, ready, False),
        (ExportPolicy.JUDGED, abstained, False),
        (ExportPolicy.TOP, abstained, False),
        (ExportPolicy.JUDGED, lambda store: judged(store, 1), True),
        (ExportPolicy.ALL, lambda store: judged(store, 1), False),  # exported on segment.ready already
    ],
)
async def test_the_policy_selects_segments(
    store: Store, policy: ExportPolicy, event: Callable[[Store], Awaitable[Envelope]], exports: bool
) -> None:
    assert bool(await handlers(store, policy).handle(await event(store))) == exports


async def test_top_k_is_decided_at_the_time_of_judging(store: Store) -> None:
    top = handlers(store, ExportPolicy.TOP, top_k=1)
    assert await top.handle(await judged(store, 4, number=0))
    assert not await top.handle(await judged(store, 2, number=1))
    assert await top.handle(await judged(store, 5, number=1))


async def test_an_unreadable_score_does_not_block_other_exports(store: Store) -> None:
    top = handlers(store, ExportPolicy.TOP, top_k=1)
    unreadable = await judged(store, 5, number=0)
    await store.put(unreadable.data.key, b"{")
    assert await top.handle(await judged(store, 2, number=1))


async def test_dimension_rated_by_two_judges_counts_by_their_mean(store: Store, tmp_path: Path) -> None:
    event = await judged(store, 5, number=0)
    scores = SegmentScores.from_bytes(await store.get(event.data.key))
    low = DimensionScore(votes=[1] * 3, value=0.2, unanimous=True, spread=0)
    second = scores.judges[0].model_copy(update={"judge": "puzzle", "dimensions": {"progress": low}})
    both = scores.model_copy(update={"judges": [*scores.judges, second]})
    await store.put(event.data.key, both.to_bytes())
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"))
    await export_dataset(
        settings, SegmentSelection.parse("walk", None, None, scores.segment), tmp_path / "walk.parquet", pytest.fail
    )
    values = pq.read_table(tmp_path / "walk.parquet")["score_progress"].to_pylist()
    assert values == pytest.approx([0.6] * 60)


async def test_an_interrupted_data_set_leaves_the_previous_one_intact(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "out" / "walk.parquet"
    place.parent.mkdir()
    place.write_bytes(b"the data set of yesterday")
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"))
    of, asked = ScoreLookup.segment, 0

    async def at_first(scores: ScoreLookup, *which: Any) -> SegmentScores | None:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise Transient("the store is away")
        return await of(scores, *which)

    monkeypatch.setattr(ScoreLookup, "segment", at_first)
    with pytest.raises(Transient, match="the store is away"):
        await export_dataset(settings, SegmentSelection.parse("walk", None, None, None), place, pytest.fail)
    assert list(place.parent.iterdir()) == [place]
    assert place.read_bytes() == b"the data set of yesterday"


async def test_steps_count_from_the_episode_start_and_only_the_last_terminates(store: Store, tmp_path: Path) -> None:
    event = await ready(store, number=1)
    facts, members = parts(await store.get(event.data.key))
    await store.put(event.data.key, write_segment({**facts, "terminated": True}, members))
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"))
    await export_dataset(
        settings, SegmentSelection.parse("walk", None, None, None), tmp_path / "walk.parquet", pytest.fail
    )
    table = pq.read_table(tmp_path / "walk.parquet")
    assert table["step"].to_pylist() == list(range(120))
    assert table["terminated"].to_pylist() == [False] * 119 + [True]
    assert len(set(table["action"].to_pylist())) > 1


async def test_video_of_an_assisted_segment_shows_who_acted(store: Store) -> None:
    event = await ready(store)
    raw = await store.get(event.data.key)
    facts, members = parts(raw)
    actors = np.array([1] * 20 + [0] * 40, np.uint8)
    assisted = write_segment(facts, replace(members, actors=actors))
    game = game_opener(None)(CONFIG)
    found, plain = (render(one, game, None, RenderOptions(frames=False, scale=2)) for one in (assisted, raw))
    assert found.manifest.caption == [*plain.manifest.caption, "steps by:  planner 20  policy 40"]
    with av.open(io.BytesIO(found.files["video.mp4"]), "r") as video:
        strips = [frame.to_ndarray(format="rgb24")[-28:].astype(int) for frame in video.decode(video.streams.video[0])]
    assert len(strips) == 61
    assert strips[0].max() < 100, "no one made the start"
    assert np.abs(strips[5] - strips[18]).mean() < 3
    assert np.abs(strips[18] - strips[40]).mean() > np.abs(strips[5] - strips[18]).mean()
    bare = render(assisted, game, None, RenderOptions(frames=False, overlay=False))
    assert bare.manifest.caption == []
