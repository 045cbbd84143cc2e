"""Runs of hundreds of epochs, runs that were deleted and made again, and a coordinator that sees many of them."""

import asyncio
from datetime import timedelta

import pytest

from services.coordinator.adapters.recall import ENDED, Recall
from services.coordinator.domain.decisions import CARD_GRACE
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import Transient
from shared.store import keys
from shared.store.port import Entry
from tests.unit.coordinator.world import BEGIN, RUN, World


async def test_a_long_run_whose_judges_never_answered_ends_with_a_record_that_can_be_read() -> None:
    world = World()
    await world.ask(epochs=120, judge_deadline_s=1)
    await world.rounds()
    for epoch in range(120):
        await world.train(epoch, segments=1)
        world.time += CARD_GRACE
        await world.rounds(2)
    record = await world.desk.runs.latest(RUN)
    assert record.state == "finished"
    assert record.reason == "Past the judges' deadline in 120 epochs, the first of them 0, the last 119."


async def delete(world: World) -> None:
    """Everything of the run, as the page on deleting says."""
    for prefix in (
        keys.run_prefix(RUN),
        keys.run_index_prefix(),
        f"episodes/episodes/{RUN}/",
        f"episodes/scores/{RUN}/",
    ):
        for entry in await world.store.list(prefix):
            await world.store.delete(entry.key)


@pytest.mark.parametrize("ended", [False, True])
async def test_a_run_that_was_deleted_and_made_again_is_another_run(ended: bool) -> None:
    world = World()
    await world.ask(epochs=1 if ended else 3)
    await world.rounds()
    await world.whole_epoch(0)
    await world.rounds()
    await delete(world)
    await world.rounds()
    assert await world.desk.runs.all() == []
    await world.ask(epochs=2)
    await world.rounds()
    assert await world.state() == "running"
    await world.train(0)
    await world.judge(0, segments=3)
    await world.rounds()
    assert len((await world.desk.tallies.of(RUN, 0)).outcomes) == 3
    await world.judge_more(3)
    await world.train_reward_model(0, accuracy=0.9)
    await world.rounds()
    view = await world.desk.views.read(await world.desk.runs.latest(RUN))
    (row,) = await world.desk.reporter.rows(view)
    assert (row.reward_model_accuracy, row.segments_judged) == (0.9, 4)


async def test_a_coordinator_that_only_answered_people_leads_a_finished_run_that_was_made_again() -> None:
    world = World()
    other = world.another_coordinator(fence=None)
    await world.ask(epochs=1)
    await world.rounds()
    await world.whole_epoch(0)
    await world.rounds()
    assert [record.state for record in await other.desk.runs.all()] == ["finished"]
    await delete(world)
    await world.ask(epochs=2)  # before anybody asked the other one for a list without it
    assert [record.state for record in await other.desk.runs.all()] == ["created"]
    other.fence = 2
    await other.rounds()
    assert await world.state() == "running"


def test_of_ended_runs_only_the_last_are_remembered() -> None:
    recall: Recall[list[int]] = Recall(list)

    def record(number: int, state: str) -> RunRecord:
        values = {"run": RunId(f"run-{number}"), "revision": 0, "state": state, "config": RunConfig()}
        return RunRecord.model_validate(values | {"created": BEGIN, "updated": BEGIN})

    recall.of(record(0, "running")).append(0)
    for number in range(1, ENDED + 2):
        recall.of(record(number, "finished")).append(number)
    assert recall.of(record(0, "running")) == [0]
    assert recall.of(record(2, "finished")) == [2]
    assert recall.of(record(1, "finished")) == []
    later = record(0, "running").model_copy(update={"created": BEGIN + timedelta(days=1)})
    assert recall.of(later) == []


async def test_a_list_that_fails_once_costs_one_round() -> None:
    world = World()
    await world.ask()
    real, left = world.store.list, [3]

    async def list_(prefix: str) -> list[Entry]:
        if left[0]:
            left[0] -= 1
            raise Transient("the store is away")
        return await real(prefix)

    world.store.list = list_  # type: ignore[method-assign]
    world.patrol.interval_s = 0.001
    walking = asyncio.create_task(world.patrol.walk())
    await asyncio.sleep(0.05)
    walking.cancel()
    assert left == [0]
    assert await world.state() == "running"
