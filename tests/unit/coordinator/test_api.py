"""Runs are started, followed and stopped over HTTP."""

import asyncio
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from shared.contracts.ids import RunId
from shared.store import keys
from tests.unit.coordinator.api_client import client
from tests.unit.coordinator.harness import RUN, SHORT_RUN, Harness, judged_epoch, segment, started_run, trained_epoch


async def create_runs(harness: Harness, http: httpx.AsyncClient, names: str, apart: timedelta) -> None:
    """Create a run for each letter, so long after each other."""
    for name in names:
        await http.post("/runs", json={"run": name, "config": SHORT_RUN})
        harness.time += apart


async def test_a_run_is_started_listed_and_shown(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        response = await http.post("/runs", json={"run": "demo", "config": SHORT_RUN})
        assert (response.status_code, response.headers["location"]) == (201, "/runs/demo")
        assert (await http.get("/runs/demo")).json()["progress"] is None
        await harness.passes()
        shown = (await http.get("/runs/demo")).json()
        assert shown["record"]["state"] == "running"
        assert shown["progress"]["doing"] == "Epoch 0 starts."
        lines = (await http.get("/runs", params={"state": "running"})).json()["items"]
        assert [(line["run"], line["world"]) for line in lines] == [("demo", "bramble:vale")]
        assert (await http.get("/runs", params={"state": "failed"})).json()["items"] == []


async def test_100_requests_with_one_idempotency_key_create_one_run(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        requests = [
            http.post("/runs", json={"config": SHORT_RUN}, headers={"Idempotency-Key": "k1"}) for _ in range(100)
        ]
        responses = await asyncio.gather(*requests)
    assert sorted(response.status_code for response in responses) == [200] * 99 + [201]
    assert len({response.json()["run"] for response in responses}) == 1
    assert len(await harness.models.runs.all()) == 1


async def test_requests_without_name_and_key_create_different_runs(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        names = {(await http.post("/runs", json={"config": SHORT_RUN})).json()["run"] for _ in range(3)}
    assert len(names) == 3


async def test_stop_and_resume_by_http(tmp_path: Path) -> None:
    harness = await started_run()
    async with client(harness, tmp_path) as http:
        assert (await http.post("/runs/demo/stop")).json()["state"] == "stopping"
        refused = await http.post("/runs/demo/resume")
        assert refused.status_code == 409
        assert refused.json()["detail"] == "Run demo is still stopping: resume it after it has stopped."


async def test_epochs_segments_and_scores_are_listed_in_pages(tmp_path: Path) -> None:
    harness = await trained_epoch()
    await harness.judge(0, segments=3)
    async with client(harness, tmp_path) as http:
        rows = (await http.get("/runs/demo/epochs")).json()
        assert [(row["epoch"], row["segments_recorded"], row["segments_waiting"]) for row in rows] == [(0, 4, 1)]
        first = (await http.get("/runs/demo/segments", params={"limit": 3})).json()
        assert [line["status"] for line in first["items"]] == ["judged"] * 3
        assert all(line["digest"] for line in first["items"])
        rest = (await http.get("/runs/demo/segments", params={"after": first["next"]})).json()
        assert [line["status"] for line in rest["items"]] == [None]
        assert rest["next"] is None
        scores = (await http.get("/runs/demo/scores", params={"epoch": 0})).json()["items"]
        assert [score["judges"][0]["dimensions"]["progress"]["votes"] for score in scores] == [[3, 3, 4]] * 3


async def test_foreign_objects_among_the_segments_are_not_listed_or_counted(tmp_path: Path) -> None:
    harness = await trained_epoch()
    for name in ("notes.txt", "e1/My_holiday.zip"):
        await harness.store.put(keys.segments_prefix(RUN, 0) + name, b"not ours")
    await harness.passes()
    async with client(harness, tmp_path) as http:
        assert len((await http.get("/runs/demo/segments")).json()["items"]) == 4
        assert (await http.get("/runs/demo")).json()["progress"]["segments_recorded"] == 4


async def test_foreign_objects_among_the_scores_are_not_listed(tmp_path: Path) -> None:
    harness = await judged_epoch()
    for name in ("Notes.json", "deeper/e1.json", "notes.txt"):
        await harness.store.put(keys.scores_prefix(RUN, 0) + name, b"not ours")
    found: list[str] = []
    after: dict[str, str] = {}
    with capture_logs() as logs:
        async with client(harness, tmp_path) as http:
            while True:
                page = (await http.get("/runs/demo/scores", params={"limit": "1", **after})).json()
                found += [item["segment"] for item in page["items"]]
                if page["next"] is None:
                    break
                after = {"after": page["next"]}
        await harness.passes()
    assert found == [segment(0, number) for number in range(4)]
    assert [line for line in logs if line["log_level"] == "error"] == []


async def test_runs_are_listed_newest_first_in_pages(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        for name in ("a", "b", "c"):
            await http.post("/runs", json={"run": name, "config": SHORT_RUN})
            await harness.passes(1)
        first = (await http.get("/runs", params={"limit": 2})).json()
        assert [line["run"] for line in first["items"]] == ["c", "b"]
        rest = (await http.get("/runs", params={"after": first["next"]})).json()
        assert [line["run"] for line in rest["items"]] == ["a"]


async def test_a_page_continues_although_its_first_run_changed_state(
    tmp_path: Path,
) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        await create_runs(harness, http, "abcdef", timedelta(seconds=1))
        for order, expected in (("newest", ["fed", "cba"]), ("oldest", ["abc", "ef"])):  # by then, d has stopped
            asked = {"state": "created", "order": order, "limit": "3"}
            first = (await http.get("/runs", params=asked)).json()
            await harness.service.stop(RunId(first["items"][-1]["run"]))
            rest = (await http.get("/runs", params=asked | {"after": first["next"]})).json()
            assert ["".join(line["run"] for line in page["items"]) for page in (first, rest)] == expected
            assert rest["next"] is None


async def test_a_page_continues_although_its_last_run_was_deleted(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        await create_runs(harness, http, "abcdef", timedelta(microseconds=1))
        for order, deleted, expected in (("newest", "d", ["fed", "cba"]), ("oldest", "c", ["abc", "ef"])):
            asked = {"order": order, "limit": "3"}
            first = (await http.get("/runs", params=asked)).json()
            await harness.service.stop(RunId(deleted))
            assert (await http.delete(f"/runs/{deleted}")).status_code == 200
            address = f"/runs?order={order}&limit=3&after={first['next']}"  # as a page writes it, without an encoding
            rest = (await http.get(address)).json()
            assert ["".join(line["run"] for line in page["items"]) for page in (first, rest)] == expected
            assert rest["next"] is None


async def test_the_name_of_a_run_still_continues_a_list(tmp_path: Path) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        await create_runs(harness, http, "abc", timedelta(seconds=1))
        rest = (await http.get("/runs?after=c&limit=1")).json()
        assert [line["run"] for line in rest["items"]] == ["b"]
        following = (await http.get("/runs", params={"after": rest["next"]})).json()
    assert [line["run"] for line in following["items"]] == ["a"]


async def test_a_reader_gets_the_current_state_then_updates() -> None:
    harness = await trained_epoch()
    await harness.judge(0, segments=1)
    await harness.passes()
    harness.broadcaster._interval_s = 0.01
    kinds: list[str] = []
    news = harness.broadcaster.follow(RUN)
    async for item in news:
        kinds.append(item.kind)
        if len(kinds) == 4:
            await harness.judge_segment()
        if kinds.count("score") == 2:
            break
    await news.aclose()
    assert kinds[:4] == ["run", "epoch", "progress", "score"]
    assert harness.broadcaster._channels == {}


@pytest.mark.parametrize(
    "name",
    [
        "RunConfig",
        "PpoConfig",
        "ShapingConfig",
        "SamplingConfig",
        "PlannerConfig",
        "GuidanceConfig",
        "RestartsConfig",
    ],
)
async def test_every_field_of_a_configuration_has_a_meaning(tmp_path: Path, name: str) -> None:
    async with client(Harness(), tmp_path) as http:
        fields = (await http.get("/openapi.json")).json()["components"]["schemas"][name]["properties"]
    assert [field for field, schema in fields.items() if not schema.get("description")] == []


async def test_pages_and_openapi_need_no_token(tmp_path: Path) -> None:
    async with client(Harness(), tmp_path, token=None) as http:
        for path in ("/", "/page/page.js", "/page/page.css", "/docs", "/page/docs.js", "/openapi.json"):
            assert (await http.get(path)).status_code == 200, path
        policy = (await http.get("/")).headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
