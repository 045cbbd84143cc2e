"""An unreadable run is logged and left out; other runs proceed."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from services.coordinator.readmodels.read_models import LISTING
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.store import keys
from tests.unit.coordinator.api_client import client
from tests.unit.coordinator.harness import RUN, START, Harness, judged_epoch, segment, started_run, trained_epoch

ODD_RUN = RunId("odd")


async def write(harness: Harness, **config: object) -> None:
    """Write a record of run `odd` with these values in its configuration."""
    record = RunRecord(run=ODD_RUN, revision=0, state="created", config=RunConfig(), created=START, updated=START)
    document = json.loads(record.to_bytes())
    document["config"] |= config
    await harness.store.put(keys.run_index(ODD_RUN), ODD_RUN.encode())
    await harness.store.put(keys.run_revision(ODD_RUN, 0), json.dumps(document).encode())


async def test_other_runs_proceed_and_the_problem_is_logged_once() -> None:
    harness = Harness()
    await harness.create_run()
    await write(harness, epochs="three")
    with capture_logs() as logs:
        await harness.passes(3)
    assert await harness.state() == "running"
    assert [record.run for record in await harness.models.runs.all()] == ["demo"]
    assert [(line["run"], line["event"]) for line in logs if line["log_level"] == "error"] == [("odd", "run skipped")]
    assert REGISTRY.get_sample_value("zelda_runs_unreadable_records") == 1


async def test_a_repaired_record_is_reconciled_again() -> None:
    harness = Harness()
    await write(harness, epochs="three")
    await harness.passes()
    await write(harness, epochs=3)
    harness.time += LISTING
    await harness.passes()
    assert (await harness.models.runs.latest(ODD_RUN)).state == "running"
    assert REGISTRY.get_sample_value("zelda_runs_unreadable_records") == 0


async def test_requests_for_an_unreadable_run_get_one_sentence(tmp_path: Path) -> None:
    harness = Harness()
    await harness.create_run()
    await write(harness, epochs="three")
    async with client(harness, tmp_path) as http:
        assert [line["run"] for line in (await http.get("/runs")).json()["items"]] == ["demo"]
        for method, path in (("GET", "/runs/odd"), ("POST", "/runs/odd/stop"), ("GET", "/runs/odd/events")):
            response = await http.request(method, path)
            assert (response.status_code, response.headers["content-type"]) == (500, "application/problem+json")
            assert response.json()["detail"].startswith(
                "Run odd cannot be read: models/runs/odd/record/00000000.json is not a valid RunRecord: config.epochs:"
            )


async def test_a_record_of_a_newer_version_is_read_without_its_new_fields() -> None:
    harness = Harness()
    await write(harness, new_option=1)
    await harness.passes()
    record = await harness.models.runs.latest(ODD_RUN)
    assert (record.state, record.config) == ("running", RunConfig())


async def test_an_invalid_name_in_the_index_is_ignored() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.store.put(f"{keys.run_index_prefix()}Not_a_run", b"")
    await harness.passes()
    assert await harness.state() == "running"


async def test_a_run_with_a_damaged_document_is_logged_once_and_can_be_stopped(
    tmp_path: Path,
) -> None:
    harness = await trained_epoch()
    card = keys.reward_model_card(RUN, 0)
    await harness.store.put(card, b"{")
    with capture_logs() as logs:
        await harness.passes(3)
    logged = [line["error"] for line in logs if line["event"] == "run not reconciled"]
    assert len(logged) == 1
    assert logged[0].startswith(f"{card} is not a valid RewardModelCard")
    async with client(harness, tmp_path) as http:
        response = await http.get(f"/runs/{RUN}/epochs")
        assert response.status_code == 500
        assert card in response.json()["detail"]
        await http.post(f"/runs/{RUN}/stop")
    await harness.passes(30)
    assert await harness.state() == "stopped"


async def test_a_stopped_run_with_a_damaged_document_refuses_to_resume(tmp_path: Path) -> None:
    harness = await trained_epoch()
    await harness.service.stop(RUN)
    await harness.passes()
    finished = keys.epoch_finished(RUN, 0)
    whole = await harness.store.get(finished)
    await harness.store.put(finished, b"{")
    harness.wire()  # a coordinator that has not read it yet
    async with client(harness, tmp_path) as http:
        response = await http.post(f"/runs/{RUN}/resume")
        assert (response.status_code, response.json()["detail"].split()[0]) == (500, finished)
        assert await harness.state() == "stopped"
        await harness.store.put(finished, whole)  # restore it from a backup
        assert (await http.post(f"/runs/{RUN}/resume")).json()["state"] == "running"


async def test_a_damaged_heartbeat_counts_as_missing() -> None:
    harness = await started_run()
    await harness.store.put(keys.driver_heartbeat(RUN), b"")
    await harness.train(0)
    await harness.judge(0)
    await harness.train_reward_model(0)
    await harness.passes()
    assert (await harness.start_order(1)).epoch == 1


async def test_a_damaged_score_is_left_out_of_the_list(tmp_path: Path) -> None:
    harness = await judged_epoch()
    await harness.store.put(keys.score(RUN, 0, segment(0, 1)), b"{")
    async with client(harness, tmp_path) as http:
        page = (await http.get(f"/runs/{RUN}/scores")).json()
    assert [item["segment"] for item in page["items"]] == [segment(0, number) for number in (0, 2, 3)]


async def test_an_unexpected_error_of_one_run_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    first = RunId("a-run-before-it")
    created = await harness.create_run()
    await harness.models.runs.create(created.model_copy(update={"run": first}))
    step = harness.reconciler.state_machine.step

    async def failing(run: RunId, *arguments: Any) -> Any:
        if run == first:
            raise ValueError("a bug")
        return await step(run, *arguments)

    monkeypatch.setattr(harness.reconciler.state_machine, "step", failing)
    with capture_logs() as lines:
        await harness.passes(2)
    assert await harness.state() == "running"
    assert [line["run"] for line in lines if line["event"] == "run not reconciled"] == [first]
