"""A deletion removes everything of one run, is refused while the run is active, and outlives its late events."""

from pathlib import Path

import pytest

from services.coordinator.domain.lifecycle import advance
from services.coordinator.handlers import Handlers
from shared.contracts.envelope import wrap
from shared.contracts.events import RmTrained
from shared.contracts.ids import Digest, RunId
from shared.errors import Permanent
from shared.state.deleted_runs import RunDeleted, ignore_deleted_runs
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import NotFound
from tests.unit.coordinator.api_client import VIEWER, client
from tests.unit.coordinator.earlier_run import EARLIER, PLACE, ROUTE, add_earlier_run
from tests.unit.coordinator.harness import RUN, SHORT_RUN, Harness, judged_epoch

OTHER = RunId("other")


async def stopped_run() -> Harness:
    """A stopped run with segments, scores and notes, beside another one."""
    harness = await judged_epoch()
    await harness.service.write_notes(RUN, "text", [])
    await harness.service.stop(RUN)
    await harness.passes(40)
    assert await harness.state() == "stopped"
    return harness


async def keys_of(store: MemoryStore, run: str) -> list[str]:
    """All keys that name the run."""
    entries = [*await store.list("episodes/"), *await store.list("models/")]
    return [entry.key for entry in entries if run in entry.key.split("/")]


async def test_a_deletion_removes_one_run_and_says_what(tmp_path: Path) -> None:
    harness = await stopped_run()
    async with client(harness, tmp_path) as http:
        await http.post("/runs", json={"run": OTHER, "config": SHORT_RUN})
        others = await keys_of(harness.store, OTHER)
        response = await http.delete("/runs/demo")
        assert [run["run"] for run in (await http.get("/runs")).json()["items"]] == [OTHER]
        assert (await http.get("/runs/demo")).status_code == 404
    assert response.status_code == 200
    deleted = response.json()
    assert (deleted["objects"]["segments"], deleted["objects"]["scores"]) == (4, 5)  # scores.jsonl is the fifth
    assert deleted["bytes"] > 1_000
    assert await keys_of(harness.store, RUN) == [keys.deleted_run(RUN)]
    assert await keys_of(harness.store, OTHER) == others


@pytest.mark.parametrize(
    ("passes", "sentence"),
    [
        (0, "Run demo is created: first `zelda run stop demo`."),
        (1, "Run demo is running: first `zelda run stop demo`."),
    ],
)
async def test_an_active_run_is_kept(tmp_path: Path, passes: int, sentence: str) -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes(passes)
    async with client(harness, tmp_path) as http:
        response = await http.delete("/runs/demo")
        assert (await http.get("/runs/demo")).status_code == 200
    assert (response.status_code, response.json()["detail"]) == (409, sentence)
    assert not await harness.store.exists(keys.deleted_run(RUN))


async def test_a_viewer_deletes_nothing_and_an_unknown_run_is_named(tmp_path: Path) -> None:
    harness = await stopped_run()
    async with client(harness, tmp_path, VIEWER) as http:
        assert (await http.delete("/runs/demo")).status_code == 403
    async with client(harness, tmp_path) as http:
        assert (await http.delete("/runs/nope")).status_code == 404


async def test_the_name_of_a_deleted_run_stays_taken(tmp_path: Path) -> None:
    harness = await stopped_run()
    async with client(harness, tmp_path) as http:
        await http.delete("/runs/demo")
        response = await http.post("/runs", json={"run": "demo", "config": SHORT_RUN})
    assert response.status_code == 409
    assert response.json()["detail"].startswith("Run demo was deleted and its name stays taken")


async def test_a_second_deletion_removes_what_was_written_late(tmp_path: Path) -> None:
    harness = await stopped_run()
    async with client(harness, tmp_path) as http:
        await http.delete("/runs/demo")
        await harness.judge_segment(1)  # a judge that had the segment in its hands
        again = (await http.delete("/runs/demo")).json()
        assert again["objects"] == {"scores": 1}
    assert await keys_of(harness.store, RUN) == [keys.deleted_run(RUN)]


async def test_a_late_revision_does_not_bring_a_deleted_run_back() -> None:
    harness = await stopped_run()
    runs = harness.models.runs
    late = advance(await runs.latest(RUN), "running", harness.time, fence=1)
    await harness.service.delete(RUN)
    with pytest.raises(RunDeleted):  # its writer read the record before the deletion
        await runs.append(late)
    assert await keys_of(harness.store, RUN) == [keys.deleted_run(RUN)]


async def test_an_interrupted_deletion_goes_on_from_its_mark(tmp_path: Path) -> None:
    harness = await stopped_run()
    await harness.store.put(keys.deleted_run(RUN), RUN.encode())
    async with client(harness, tmp_path) as http:
        assert (await http.post("/runs/demo/resume")).status_code == 409
        assert (await http.delete("/runs/demo")).status_code == 200
    assert await keys_of(harness.store, RUN) == [keys.deleted_run(RUN)]


PLAY = ("", "/frames/0", "/video", "/potential")


async def test_no_replica_shows_what_a_deleted_run_recorded(tmp_path: Path) -> None:
    harness = Harness()
    await add_earlier_run(harness.store)
    other = harness.another_coordinator(fence=None)
    (tmp_path / "other").mkdir()
    await harness.store.put(f"{keys.export_prefix(*PLACE)}video.mp4", b"frames")
    async with client(harness, tmp_path) as http, client(other, tmp_path / "other") as elsewhere:
        for one in (http, elsewhere):
            assert [(await one.get(ROUTE + path)).status_code for path in PLAY] == [200] * 4
            assert (await one.get(f"/runs/{EARLIER}/epochs/0/gallery")).status_code == 200
        assert len(harness.models.archives._archives) > 0
        assert (await http.delete(f"/runs/{EARLIER}")).status_code == 200
        for one in (http, elsewhere):
            shown = [await one.get(ROUTE + path) for path in PLAY]
            assert [found.status_code for found in shown] == [404] * 4
            assert shown[1].json()["detail"] == f"There is no run '{EARLIER}': see GET /runs."
    assert (len(harness.models.archives._archives), len(harness.models.archives._summaries)) == (0, 0)


async def test_a_deletion_frees_only_the_pictures_of_its_run() -> None:
    harness = Harness()
    await add_earlier_run(harness.store)
    await harness.models.archives.picture(PLACE, 0)
    harness.models.archives.forget(RUN)
    assert len(harness.models.archives._archives) == 1


async def test_a_run_that_is_deleted_during_its_creation_is_a_conflict(tmp_path: Path) -> None:
    class LateMark(MemoryStore):
        """Another coordinator marks the run after the first look."""

        async def exists(self, key: str) -> bool:
            found = await super().exists(key)
            if key == keys.deleted_run(RUN):
                await self.put(key, b"")
            return found

    async with client(Harness(LateMark), tmp_path) as http:
        response = await http.post("/runs", json={"run": "demo", "config": SHORT_RUN})
    assert response.status_code == 409
    assert response.json()["detail"] == "Run demo was deleted and its name stays taken: choose another name."


async def test_a_late_event_of_a_deleted_run_is_no_dead_letter() -> None:
    harness = await stopped_run()
    handler = ignore_deleted_runs(harness.store, Handlers(harness.reconciler).handle)
    card = Digest("0" * 64)
    trained = RmTrained(run=RUN, epoch=0, key=keys.reward_model_card(RUN, 0), digest=card)
    await harness.service.delete(RUN)
    assert await handler(wrap(trained, source="test")) == []
    with pytest.raises(NotFound):
        await handler(wrap(trained.model_copy(update={"run": OTHER}), source="test"))


async def test_other_errors_of_a_deleted_run_are_not_hidden() -> None:
    store = MemoryStore()
    await store.put(keys.deleted_run(RUN), b"")

    async def fails(event: object) -> list[object]:
        raise Permanent("the archive is damaged")

    trained = RmTrained(run=RUN, epoch=0, key=keys.reward_model_card(RUN, 0), digest=Digest("0" * 64))
    with pytest.raises(Permanent, match="damaged"):
        await ignore_deleted_runs(store, fails)(wrap(trained, source="test"))  # type: ignore[arg-type]
