"""Notes and tags: people find runs again by them, and the record of a run stays as it is."""

import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from services.coordinator.readmodels.run_notes import PARALLEL
from shared.contracts.ids import RunId
from shared.contracts.progress import RunNotes
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.coordinator.api_client import VIEWER, client
from tests.unit.coordinator.counting_store import CountingStore
from tests.unit.coordinator.harness import RUN, SHORT_RUN, Harness, started_run


async def test_a_note_stands_beside_an_unchanged_record(tmp_path: Path) -> None:
    harness = await started_run()
    before = [await harness.store.get(entry.key) for entry in await harness.store.list(keys.run_prefix(RUN))]
    async with client(harness, tmp_path) as http:
        empty = (await http.get("/runs/demo/notes")).json()
        response = await http.put("/runs/demo/notes", json={"note": "doubled entropy", "tags": ["b", "a", "b"]})
        assert response.status_code == 200
        found = (await http.get("/runs/demo/notes")).json()
    assert (empty["note"], empty["tags"], empty["updated"]) == ("", [], None)
    assert (found["note"], found["tags"]) == ("doubled entropy", ["a", "b"])
    assert found["updated"] is not None
    assert before == [await harness.store.get(entry.key) for entry in await harness.store.list(keys.run_prefix(RUN))]


async def test_runs_are_found_by_their_tag(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        for run in ("one", "two"):
            await http.post("/runs", json={"run": run, "config": SHORT_RUN})
        await http.put("/runs/two/notes", json={"tags": ["baseline"]})
        tagged = (await http.get("/runs", params={"tag": "baseline"})).json()["items"]
        assert [(run["run"], run["tags"]) for run in tagged] == [("two", ["baseline"])]
        await http.put("/runs/two/notes", json={"tags": []})
        assert (await http.get("/runs", params={"tag": "baseline"})).json()["items"] == []
        assert [run["tags"] for run in (await http.get("/runs")).json()["items"]] == [[], []]


async def test_a_bad_tag_or_field_and_an_unknown_run_are_refused(tmp_path: Path) -> None:
    harness = await started_run()
    async with client(harness, tmp_path) as http:
        tag = await http.put("/runs/demo/notes", json={"tags": ["Good Tag"]})
        field = await http.put("/runs/demo/notes", json={"nots": "text"})
        long = await http.put("/runs/demo/notes", json={"note": "x" * 4_001})
        absent = [await http.get("/runs/nope/notes"), await http.put("/runs/nope/notes", json={})]
    assert (
        tag.json()["detail"] == "tags.0: 'Good Tag' is not a Tag: use 1-40 lower-case letters, digits or inner hyphens."
    )
    assert field.json()["detail"] == "nots: no such field; choose from note, tags."
    assert [one.status_code for one in (tag, field, long)] == [422] * 3
    assert [one.status_code for one in absent] == [404, 404]


async def test_a_viewer_cannot_write_notes(tmp_path: Path) -> None:
    harness = await started_run()
    async with client(harness, tmp_path, VIEWER) as http:
        assert (await http.put("/runs/demo/notes", json={"tags": ["mine"]})).status_code == 403
        assert (await http.get("/runs/demo/notes")).json()["tags"] == []


async def test_unreadable_notes_hide_no_run(tmp_path: Path) -> None:
    harness = await started_run()
    await harness.store.put(keys.run_notes(RUN), b"{")
    with capture_logs() as logs:
        async with client(harness, tmp_path) as http:
            assert [run["tags"] for run in (await http.get("/runs")).json()["items"]] == [[]]
    assert [line["event"] for line in logs if line["event"] == "notes skipped"] == ["notes skipped"]


async def test_unchanged_notes_are_read_once() -> None:
    harness = Harness(CountingStore)  # its clock stands in the past, so its objects are old
    await harness.create_run()
    await harness.service.write_notes(RUN, "text", [])
    assert isinstance(harness.store, CountingStore)
    assert await harness.models.notes.tags() == {RunId("demo"): []}
    reads = len(harness.store.reads)
    await harness.models.notes.tags()
    assert len(harness.store.reads) == reads


async def test_the_notes_of_many_runs_are_read_some_at_a_time() -> None:
    harness = Harness(SlowStore)
    assert isinstance(harness.store, SlowStore)
    names = [RunId(f"run-{number:02d}") for number in range(40)]
    for name in names:
        await harness.store.put(keys.run_notes(name), RunNotes(run=name).to_bytes())
    assert list(await harness.models.notes.tags()) == names
    assert harness.store.most == PARALLEL


class SlowStore(MemoryStore):
    """A store whose reads take time; counts how many run at the same time."""

    running = most = 0

    async def get(self, key: str, digest: str | None = None) -> bytes:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        return await super().get(key, digest)
