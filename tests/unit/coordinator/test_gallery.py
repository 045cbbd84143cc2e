"""Recorded play over REST: an epoch's gallery, one segment, its pictures and video, the map of rooms."""

from pathlib import Path
from typing import Any

import pytest

from services.coordinator.domain.segment_summary import timeline
from services.coordinator.report.data import collect_report_data
from shared.bus.topology import EXPORTER_SEGMENTS
from shared.contracts.events import ExportRequested
from shared.contracts.progress import ArchiveCoverage, ArchivedRoom
from shared.store import keys
from tests.unit.coordinator.api_client import VIEWER, client
from tests.unit.coordinator.earlier_run import EARLIER, PLACE, ROUTE, add_earlier_run
from tests.unit.coordinator.harness import Harness

PNG = b"\x89PNG\r\n\x1a\n"
ABSENT = ROUTE.replace("-s000", "-s900")


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
    path = f"/runs/{EARLIER}/epochs/0/gallery"
    found = await get(harness, tmp_path, path)
    assert found[0]["segment"] == PLACE.segment
    assert len(found) == 6
    assert all(one["status"] == "judged" and one["frames"] == 8 and one["rooms"] >= 1 for one in found)
    pages = await get(harness, tmp_path, f"{path}?limit=4")
    pages += await get(harness, tmp_path, f"{path}?limit=4&after={pages[-1]['segment']}")
    assert pages == found


async def test_segments_with_equal_play_have_the_same_mark(tmp_path: Path) -> None:
    harness = await recorded()
    found = await get(harness, tmp_path, f"/runs/{EARLIER}/epochs/0/gallery")
    assert len({one["play"] for one in found}) == 6
    place = PLACE._replace(segment=type(PLACE.segment)("e0000-r00-v00-0000-s007"))
    await harness.store.put(keys.segment(*place), await harness.store.get(keys.segment(*PLACE)))
    again = await get(harness, tmp_path, f"/runs/{EARLIER}/epochs/0/gallery")
    assert len(again) == 7
    assert len({one["play"] for one in again}) == 6


async def test_a_damaged_archive_is_left_out_of_the_gallery(tmp_path: Path) -> None:
    harness = await recorded()
    await harness.store.put(keys.segment(*PLACE), b"not a zip")
    found = await get(harness, tmp_path, f"/runs/{EARLIER}/epochs/0/gallery")
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
        assert (await http.get(path)).status_code == 404


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
        await harness.store.put(f"{keys.export_prefix(*PLACE)}potential.json", b"[0.25, -1]")
        ready = await http.get(f"{ROUTE}/potential")
        await harness.store.put(f"{keys.export_prefix(*PLACE)}potential.json", b"{")
        damaged = await http.get(f"{ROUTE}/potential")
    assert (before.json(), ready.json()) == ([], [0.25, -1.0])
    assert damaged.json()["detail"].startswith(f"segment {PLACE.segment}: potential.json is not a list of numbers")


async def test_a_video_is_requested_once_then_served(tmp_path: Path) -> None:
    harness = await recorded()
    await harness.bus.fetch(EXPORTER_SEGMENTS, 1, 0)  # the consumer exists before the event
    async with client(harness, tmp_path, VIEWER) as http:
        waiting = [await http.get(f"{ROUTE}/video") for _ in range(2)]
        await harness.store.put(f"{keys.export_prefix(*PLACE)}video.mp4", b"frames")
        ready = await http.get(f"{ROUTE}/video")
    assert [(one.status_code, one.headers["retry-after"]) for one in waiting] == [(202, "2")] * 2
    assert (ready.status_code, ready.content, ready.headers["content-type"]) == (200, b"frames", "video/mp4")
    (event,) = await harness.consume(EXPORTER_SEGMENTS)
    assert isinstance(event.data, ExportRequested)
    assert event.data.segment == PLACE.segment


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
