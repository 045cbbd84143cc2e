"""A run that cannot be read stands by itself: it is told, and every other run goes on."""

import json
from pathlib import Path

from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from services.coordinator.build import make_desk
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.store import keys
from tests.unit.coordinator.door import client
from tests.unit.coordinator.world import BEGIN, RUN, World, segment

ODD = RunId("odd")


async def write(world: World, **config: object) -> None:
    """A record of run `odd` whose configuration holds something else, too."""
    record = RunRecord(run=ODD, revision=0, state="created", config=RunConfig(), created=BEGIN, updated=BEGIN)
    document = json.loads(record.to_bytes())
    document["config"] |= config
    await world.store.put(keys.run_index(ODD), ODD.encode())
    await world.store.put(keys.run_revision(ODD, 0), json.dumps(document).encode())


async def test_other_runs_go_on_and_the_trouble_is_told_once() -> None:
    world = World()
    await world.ask()
    await write(world, epochs="three")
    with capture_logs() as logs:
        await world.rounds(3)
    assert await world.state() == "running"
    assert [record.run for record in await world.desk.runs.all()] == ["demo"]
    assert [(line["run"], line["event"]) for line in logs if line["log_level"] == "error"] == [("odd", "run left out")]
    assert REGISTRY.get_sample_value("zelda_runs_unreadable_records") == 1


async def test_a_repaired_record_is_taken_up_again() -> None:
    world = World()
    await write(world, epochs="three")
    await world.rounds()
    await write(world, epochs=3)
    await world.rounds()
    assert (await world.desk.runs.latest(ODD)).state == "running"
    assert REGISTRY.get_sample_value("zelda_runs_unreadable_records") == 0


async def test_whoever_asks_for_it_gets_one_sentence(tmp_path: Path) -> None:
    world = World()
    await world.ask()
    await write(world, epochs="three")
    async with client(world, tmp_path) as http:
        assert [line["run"] for line in (await http.get("/runs")).json()["items"]] == ["demo"]
        for method, path in (("GET", "/runs/odd"), ("POST", "/runs/odd/stop"), ("GET", "/runs/odd/events")):
            answer = await http.request(method, path)
            assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
            assert answer.json()["detail"].startswith(
                "Run odd cannot be read: models/runs/odd/record/00000000.json is not a valid RunRecord: config.epochs:"
            )


async def test_a_record_of_a_newer_version_is_played_without_its_new_fields() -> None:
    world = World()
    await write(world, new_option=1)
    await world.rounds()
    record = await world.desk.runs.latest(ODD)
    assert (record.state, record.config) == ("running", RunConfig())


async def test_an_object_in_the_index_that_names_no_run_is_passed_over() -> None:
    world = World()
    await world.ask()
    await world.store.put(f"{keys.run_index_prefix()}Not_a_run", b"")
    await world.rounds()
    assert await world.state() == "running"


async def test_a_damaged_document_is_named_told_once_and_does_not_keep_the_run_from_being_stopped(
    tmp_path: Path,
) -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    card = keys.reward_model_card(RUN, 0)
    await world.store.put(card, b"{")
    with capture_logs() as logs:
        await world.rounds(3)
    told = [line["error"] for line in logs if line["event"] == "run could not be looked at"]
    assert len(told) == 1
    assert told[0].startswith(f"{card} is not a valid RewardModelCard")
    async with client(world, tmp_path) as http:
        answer = await http.get(f"/runs/{RUN}/epochs")
        assert answer.status_code == 500
        assert card in answer.json()["detail"]
        await http.post(f"/runs/{RUN}/stop")
    await world.rounds(30)
    assert await world.state() == "stopped"


async def test_a_stopped_run_with_a_damaged_document_is_refused_to_go_on_and_stays_stopped(tmp_path: Path) -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    await world.desk.stop(RUN)
    await world.rounds()
    finished = keys.epoch_finished(RUN, 0)
    whole = await world.store.get(finished)
    await world.store.put(finished, b"{")
    world.desk = make_desk(world.bus, world.store, lambda: world.time)  # one that has not read it before
    async with client(world, tmp_path) as http:
        answer = await http.post(f"/runs/{RUN}/resume")
        assert (answer.status_code, answer.json()["detail"].split()[0]) == (500, finished)
        assert await world.state() == "stopped"
        await world.store.put(finished, whole)  # it is restored from a copy
        assert (await http.post(f"/runs/{RUN}/resume")).json()["state"] == "running"


async def test_a_damaged_sign_of_life_is_none() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.store.put(keys.driver_heartbeat(RUN), b"")
    await world.train(0)
    await world.judge(0)
    await world.train_reward_model(0)
    await world.rounds()
    assert (await world.start_order(1)).epoch == 1


async def test_a_damaged_score_is_left_out_of_the_list(tmp_path: Path) -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    await world.judge(0)
    await world.store.put(keys.score(RUN, 0, segment(0, 1)), b"{")
    async with client(world, tmp_path) as http:
        page = (await http.get(f"/runs/{RUN}/scores")).json()
    assert [item["segment"] for item in page["items"]] == [segment(0, number) for number in (0, 2, 3)]
