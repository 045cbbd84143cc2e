"""Recorded play over REST: an epoch's gallery, one segment, its pictures and video, the map of rooms."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.coordinator.domain.segment_summary import (
    MAX_TIMELINE,
    TimelineEntry,
    archive_timeline,
    summarise,
    timeline,
)
from services.coordinator.report.data import collect_report_data
from shared.bus.topology import EXPORTER_SEGMENTS
from shared.contracts.archive import open_archive
from shared.contracts.base import sha256
from shared.contracts.events import ExportRequested
from shared.contracts.progress import ArchiveCoverage, ArchivedRoom
from shared.contracts.scores import DimensionScore, JudgeResult, SegmentScores
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.coordinator.api_client import VIEWER, client
from tests.unit.coordinator.counting_store import CountingStore
from tests.unit.coordinator.earlier_run import EARLIER, PLACE, ROUTE, add_earlier_run
from tests.unit.coordinator.harness import Harness
from tests.unit.judge import segment_factory

PNG = b"\x89PNG\r\n\x1a\n"
GALLERY = f"/runs/{EARLIER}/epochs/0/gallery"
EXPORT = keys.export_prefix(*PLACE)
ABSENT, OTHER = ROUTE.replace("-s000", "-s900"), ROUTE.replace("-s000", "-s001")


async def recorded() -> Harness:
    """A coordinator on the store of the earlier run."""
    harness = Harness()
    await add_earlier_run(harness.store)
    return harness


async def get(harness: Harness, directory: Path, path: str) -> Any:
    """The JSON that a viewer gets."""
    async with client(harness, directory, VIEWER) as http:
        response = await http.get(path)
    assert response.status_code == 200, response.text
    return response.json()


async def test_the_gallery_lists_each_segment_with_its_score(tmp_path: Path) -> None:
    harness = await recorded()
    page = await get(harness, tmp_path, GALLERY)
    found = page["items"]
    assert page["next"] is None
    assert found[0]["segment"] == PLACE.segment
    assert len(found) == 6
    assert all(one["status"] == "judged" and one["frames"] == 8 and one["rooms"] >= 1 for one in found)
    first = await get(harness, tmp_path, f"{GALLERY}?limit=4")
    rest = await get(harness, tmp_path, f"{GALLERY}?limit=4&after={first['next']}")
    assert first["items"] + rest["items"] == found
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("gated", "figures"), [([], (0.9, 4)), (["state"], (0.8, 1)), (["state", "vision"], (None, None))]
)
async def test_a_gated_judge_counts_neither_in_novelty_nor_disagreement(
    tmp_path: Path, gated: list[str], figures: tuple[float | None, int | None]
) -> None:
    harness, key = await recorded(), keys.score(EARLIER, 0, PLACE.segment)
    scores = SegmentScores.from_bytes(await harness.store.get(key))
    judges = [rated(scores.judges[0], "state", 1.0, spread=4), rated(scores.judges[0], "vision", 0.8, spread=1)]
    changed = scores.model_copy(update={"judges": judges, "gated": {name: ["drift"] for name in gated}})
    await harness.store.put(key, changed.to_bytes())
    (first, *_) = (await get(harness, tmp_path, GALLERY))["items"]
    assert (first["novelty"], first["disagreement"]) == figures


def rated(result: JudgeResult, judge: str, novelty: float, spread: int) -> JudgeResult:
    """The result of another judge, who rated only novelty."""
    dimension = DimensionScore(votes=[5 - spread, 5], value=novelty, unanimous=False, spread=spread)
    return result.model_copy(update={"judge": judge, "dimensions": {"novelty": dimension}})


@pytest.mark.parametrize("damaged", [[0], [1], [0, 1]])
async def test_a_damaged_archive_ends_no_list_of_pages(tmp_path: Path, damaged: list[int]) -> None:
    harness = await recorded()
    listed = sorted(entry.key for entry in await harness.store.list(keys.segments_prefix(EARLIER, 0)))
    for number in damaged:
        await harness.store.put(listed[number], b"not a zip")
    found, after, pages = [], "", 0
    while after is not None:
        page = await get(harness, tmp_path, f"{GALLERY}?limit=2{after and f'&after={after}'}")
        found += [one["segment"] for one in page["items"]]
        after, pages = page["next"], pages + 1
    assert found == [key.rpartition("/")[2].removesuffix(".zip") for key in listed if listed.index(key) not in damaged]
    assert pages == 3


async def test_segments_with_equal_play_have_the_same_mark(tmp_path: Path) -> None:
    harness = await recorded()
    found = (await get(harness, tmp_path, GALLERY))["items"]
    assert len({one["play"] for one in found}) == 6
    place = PLACE._replace(segment=type(PLACE.segment)("e0000-r00-v00-0000-s007"))
    await harness.store.put(keys.segment(*place), await harness.store.get(keys.segment(*PLACE)))
    again = (await get(harness, tmp_path, GALLERY))["items"]
    assert len(again) == 7
    assert len({one["play"] for one in again}) == 6


async def test_a_damaged_archive_is_left_out_of_the_gallery(tmp_path: Path) -> None:
    harness = await recorded()
    await harness.store.put(keys.segment(*PLACE), b"not a zip")
    found = (await get(harness, tmp_path, GALLERY))["items"]
    assert len(found) == 5
    async with client(harness, tmp_path, VIEWER) as http:
        response = await http.get(ROUTE)
    assert response.status_code == 500
    assert "not a segment archive" in response.json()["detail"]


async def test_a_segment_shows_votes_rewards_and_what_happened(tmp_path: Path) -> None:
    detail = await get(await recorded(), tmp_path, ROUTE)
    assert detail["scores"]["judges"][0]["reasons"]
    assert detail["reward_terms"]
    assert detail["key_frames"][0] == 0
    steps = [entry["step"] for entry in detail["timeline"]]
    assert steps == sorted(steps)
    assert steps


async def test_a_key_frame_is_a_picture_that_browsers_keep(tmp_path: Path) -> None:
    harness = await recorded()
    async with client(harness, tmp_path, VIEWER) as http:
        first = await http.get(f"{ROUTE}/frames/0")
        again = await http.get(f"{ROUTE}/frames/0", headers={"If-None-Match": first.headers["etag"]})
        beyond = await http.get(f"{ROUTE}/frames/9")
    assert first.content.startswith(PNG)
    assert first.headers["cache-control"].startswith("private")
    assert (again.status_code, beyond.status_code) == (304, 404)
    assert beyond.json()["detail"] == f"segment {PLACE.segment} has 8 key frames, counted from 0."


@pytest.mark.parametrize("path", [ABSENT, f"{ABSENT}/frames/0", f"{ABSENT}/video", "/runs/nope/epochs/0/gallery"])
async def test_an_absent_segment_or_run_is_not_found(tmp_path: Path, path: str) -> None:
    async with client(await recorded(), tmp_path, VIEWER) as http:
        response = await http.get(path)
    assert response.status_code == 404
    assert ".zip" not in response.json()["detail"]  # a key of the store says nothing to a client


@pytest.mark.parametrize("path", [f"{ROUTE}/frames/-1", f"{ROUTE}/frames/64", ROUTE.replace("epochs/0", "epochs/x")])
async def test_bad_numbers_are_refused(tmp_path: Path, path: str) -> None:
    async with client(await recorded(), tmp_path, VIEWER) as http:
        assert (await http.get(path)).status_code == 422


async def test_the_map_counts_every_step_and_pictures_rooms(tmp_path: Path) -> None:
    found = await get(await recorded(), tmp_path, f"/runs/{EARLIER}/epochs/0/rooms")
    assert (found["recorded"], found["read"]) == (6, 6)
    assert sum(room["steps"] for room in found["rooms"]) == 6 * 300
    assert any(room["picture"] is not None for room in found["rooms"])


async def test_the_map_shows_how_far_the_archive_of_states_reaches(tmp_path: Path) -> None:
    harness = await recorded()
    reached = ArchivedRoom(group=0, room=200, cells=7, new_cells=2, visits=9)
    coverage = ArchiveCoverage(run=EARLIER, epoch=0, rooms=[reached])
    await harness.store.put(keys.archive_coverage(EARLIER, 0), coverage.to_bytes())
    found = await get(harness, tmp_path, f"/runs/{EARLIER}/epochs/0/rooms")
    unseen = next(room for room in found["rooms"] if room["room"] == 200)
    assert (unseen["steps"], unseen["cells"], unseen["new_cells"], unseen["picture"]) == (0, 7, 2, None)
    assert sum(room["cells"] for room in found["rooms"]) == 7
    data = await collect_report_data(harness.store, EARLIER)
    assert [room.cells for room in data.rooms.rooms if room.cells] == [7]


async def test_the_potential_of_an_export_is_served(tmp_path: Path) -> None:
    harness = Harness()
    await add_earlier_run(harness.store)
    async with client(harness, tmp_path, VIEWER) as http:
        before = await http.get(f"{ROUTE}/potential")
        await harness.store.put(f"{EXPORT}potential.json", b"[0.25, -1]")
        ready = await http.get(f"{ROUTE}/potential")
        await harness.store.put(f"{EXPORT}potential.json", b"{")
        damaged = await http.get(f"{ROUTE}/potential")
    assert (before.json(), ready.json()) == ([], [0.25, -1.0])
    assert damaged.json()["detail"].startswith(f"segment {PLACE.segment}: potential.json is not a list of numbers")


async def test_a_video_is_requested_once_then_served(tmp_path: Path) -> None:
    harness = await recorded()
    await harness.bus.fetch(EXPORTER_SEGMENTS, 1, 0)  # the consumer exists before the event
    async with client(harness, tmp_path, VIEWER) as http:
        waiting = [await http.get(f"{ROUTE}/video") for _ in range(2)]
        await harness.store.put(f"{EXPORT}video.mp4", b"frames")
        ready = await http.get(f"{ROUTE}/video")
    assert [(one.status_code, one.headers["retry-after"]) for one in waiting] == [(202, "2")] * 2
    assert (ready.status_code, ready.content, ready.headers["content-type"]) == (200, b"frames", "video/mp4")
    (event,) = await harness.consume(EXPORTER_SEGMENTS)
    assert isinstance(event.data, ExportRequested)
    assert event.data.segment == PLACE.segment


async def test_a_segment_that_was_exported_without_a_video_has_none(tmp_path: Path) -> None:
    harness = await recorded()
    await harness.store.put(f"{EXPORT}manifest.json", b"{}")
    async with client(harness, tmp_path, VIEWER) as http:
        response = await http.get(f"{ROUTE}/video")
    assert response.status_code == 404
    assert response.json()["detail"] == (
        f"segment {PLACE.segment} was exported without a video (ZELDA_EXPORT__VIDEO): make one with "
        f"`zelda export segments {EARLIER} --epoch 0 --segment {PLACE.segment}`."
    )
    assert await harness.consume(EXPORTER_SEGMENTS) == []


class LateExport(MemoryStore):
    """The exporter writes its video and manifest between two reads."""

    async def exists(self, key: str) -> bool:
        """Finish the export, then look."""
        if key == f"{EXPORT}manifest.json":
            await self.put(f"{EXPORT}video.mp4", b"frames")
            await self.put(key, b"{}")
        return await super().exists(key)


async def test_a_video_that_comes_during_the_request_is_served(tmp_path: Path) -> None:
    harness = Harness(LateExport)
    await add_earlier_run(harness.store)
    async with client(harness, tmp_path, VIEWER) as http:
        assert (await http.get(f"{ROUTE}/video")).content == b"frames"


async def test_a_failed_export_is_answered_with_its_reason(tmp_path: Path) -> None:
    harness = await recorded()
    harness.bus.inject(b"not an event", "zelda.v1.nobody.segment.ready")
    harness.bus.inject(b"not an event", f"zelda.v1.{EARLIER}.export.requested")
    async with client(harness, tmp_path, VIEWER) as http:
        waiting = await http.get(f"{ROUTE}/video")
        *_, requested = await harness.bus.fetch(EXPORTER_SEGMENTS, 10, 0)
        await requested.reject("ReplayMismatch: the replay ends in another state.")
        for delivery in await harness.bus.fetch(EXPORTER_SEGMENTS, 10, 0):
            await delivery.reject("not an event")
    async with client(harness, tmp_path, VIEWER) as http:  # another application: the first one listed the letters
        refused = await http.get(f"{ROUTE}/video")
        other = await http.get(f"{OTHER}/video")
    number = (await harness.bus.dead.list())[0].number
    assert (waiting.status_code, refused.status_code, other.status_code) == (202, 404, 202)
    assert refused.json()["detail"] == (
        f"the export of segment {PLACE.segment} failed (ReplayMismatch: the replay ends in another state): remove the "
        f"cause, then replay dead letter {number} with `zelda dlq replay {number}`."
    )


@pytest.mark.parametrize(("source", "reads"), [("note", 0), ("list", 0), ("archive", 1), ("archive, damaged list", 1)])
async def test_a_video_request_reads_no_archive_with_a_known_digest(tmp_path: Path, source: str, reads: int) -> None:
    harness = Harness(CountingStore)
    await add_earlier_run(harness.store)
    archive, listed = keys.segment(*PLACE), keys.epoch_finished(EARLIER, 0)
    digest = sha256(await harness.store.get(archive))
    if source == "archive":
        await harness.store.delete(listed)
    elif source != "list":
        await harness.store.put(listed, b"{")
    if source == "note":
        await harness.store.put(keys.digest_note(archive, digest), b"")
    assert isinstance(harness.store, CountingStore)
    harness.store.reads.clear()
    async with client(harness, tmp_path, VIEWER) as http:
        assert (await http.get(f"{ROUTE}/video")).status_code == 202
    assert harness.store.reads.count(archive) == reads
    (event,) = await harness.consume(EXPORTER_SEGMENTS)
    assert event.data.digest == digest


def mark(ram_start: str) -> str:
    """The mark of the play of one segment from this start."""
    with open_archive(segment_factory.archive(ram_start=ram_start)) as opened:
        return summarise(opened).play


def test_equal_actions_from_another_start_are_other_play() -> None:
    assert mark("1" * 64) == mark("1" * 64) != mark("2" * 64)


def test_a_timeline_has_no_item_that_may_have_been_there_before_and_an_end() -> None:
    rows: list[dict[str, Any]] = [{"group": 0, "room": 1, "health": health} for health in range(MAX_TIMELINE + 9)]
    assert len(timeline(rows)) == MAX_TIMELINE
    unknown, owned = rows[0], rows[0] | {"treasures": ["sword"]}
    assert timeline([unknown, owned]) == [], "what the first state does not say may be old"


def test_a_timeline_names_rooms_figures_items_and_texts() -> None:
    row: dict[str, Any] = {
        "area": "overworld",
        "group": 0,
        "room": 1,
        "health": 12,
        "treasures": ["sword"],
        "events": [],
    }
    hurt = row | {"health": 8, "events": ["hurt"]}
    moved = hurt | {"room": 2, "treasures": ["shield", "sword"], "dialog": {"line": "<b>Take this"}, "events": None}
    found = [(entry.step, entry.what) for entry in timeline([row, hurt, moved, moved])]
    expected = ["health 12 → 8", "hurt", "enters overworld room 2", "gets shield", "text: <b>Take this"]
    assert found == [(2, expected[0]), (2, expected[1]), *((3, what) for what in expected[2:])]


def test_a_timeline_begins_with_what_the_first_step_changed() -> None:
    before = json.dumps(segment_factory.rows(1)[0])
    changes = {0: {"health": 8}, 1: {"rupees": 5}}
    for known, expected in ((before, [(1, "health 12 → 8"), (2, "rupees 0 → 5")]), (None, [(2, "rupees 0 → 5")])):
        with open_archive(segment_factory.archive(changes=changes, before=known)) as opened:
            assert archive_timeline(opened) == [TimelineEntry(*one) for one in expected]
