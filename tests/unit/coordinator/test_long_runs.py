"""Runs of hundreds of epochs, deleted and recreated runs, and the bounds of caches."""

import asyncio
from datetime import timedelta

import pytest

from services.coordinator.domain.decisions import CARD_GRACE
from services.coordinator.readmodels.run_cache import MAX_ENDED, RunCache
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import Transient
from shared.store import keys
from shared.store.port import ObjectEntry
from tests.unit.coordinator.harness import RUN, START, Harness


async def test_120_unjudged_epochs_end_in_a_readable_record() -> None:
    harness = Harness()
    await harness.create_run(epochs=120, judge_deadline_s=1)
    await harness.passes()
    for epoch in range(120):
        await harness.train(epoch, segments=1)
        harness.time += CARD_GRACE
        await harness.passes(2)
    record = await harness.models.runs.latest(RUN)
    assert record.state == "finished"
    assert record.reason == "The judges' deadline passed in 120 epochs, from 0 to 119."


async def delete(harness: Harness) -> None:
    """Delete every object of the run."""
    for prefix in (
        keys.run_prefix(RUN),
        keys.run_index_prefix(),
        f"episodes/episodes/{RUN}/",
        f"episodes/scores/{RUN}/",
    ):
        for entry in await harness.store.list(prefix):
            await harness.store.delete(entry.key)


@pytest.mark.parametrize("ended", [False, True])
async def test_a_run_that_was_deleted_and_recreated_starts_empty(ended: bool) -> None:
    harness = Harness()
    await harness.create_run(epochs=1 if ended else 3)
    await harness.passes()
    await harness.complete_epoch(0)
    await harness.passes()
    await delete(harness)
    await harness.passes()
    assert await harness.models.runs.all() == []
    await harness.create_run(epochs=2)
    await harness.passes()
    assert await harness.state() == "running"
    await harness.train(0)
    await harness.judge(0, segments=3)
    await harness.passes()
    assert len((await harness.models.scores.count(RUN, 0)).outcomes) == 3
    await harness.judge_segment(3)
    await harness.train_reward_model(0, accuracy=0.9)
    await harness.passes()
    view = await harness.models.views.read(await harness.models.runs.latest(RUN))
    (row,) = await harness.models.rows.finished(view)
    assert (row.reward_model_accuracy, row.segments_judged) == (0.9, 4)


async def test_a_new_leader_starts_a_run_that_was_deleted_and_recreated() -> None:
    harness = Harness()
    other = harness.another_coordinator(fence=None)
    await harness.create_run(epochs=1)
    await harness.passes()
    await harness.complete_epoch(0)
    await harness.passes()
    assert [record.state for record in await other.models.runs.all()] == ["finished"]
    await delete(harness)
    await harness.create_run(epochs=2)  # before the other one lists the runs without it
    assert [record.state for record in await other.models.runs.all()] == ["created"]
    other.fence = 2
    await other.passes()
    assert await harness.state() == "running"


def test_only_recently_used_ended_runs_stay_cached() -> None:
    cache: RunCache[list[int]] = RunCache(list)

    def record(number: int, state: str) -> RunRecord:
        values = {"run": RunId(f"run-{number}"), "revision": 0, "state": state, "config": RunConfig()}
        return RunRecord.model_validate(values | {"created": START, "updated": START})

    cache.get(record(0, "running")).append(0)
    for number in range(1, MAX_ENDED + 2):
        cache.get(record(number, "finished")).append(number)
    assert cache.get(record(0, "running")) == [0]
    assert cache.get(record(2, "finished")) == [2]
    assert cache.get(record(1, "finished")) == []
    later = record(0, "running").model_copy(update={"created": START + timedelta(days=1)})
    assert cache.get(later) == []


async def test_a_failing_list_of_runs_is_retried_in_the_next_pass() -> None:
    harness = Harness()
    await harness.create_run()
    real, left = harness.store.list, [3]

    async def list_(prefix: str) -> list[ObjectEntry]:
        if left[0]:
            left[0] -= 1
            raise Transient("the store is away")
        return await real(prefix)

    harness.store.list = list_  # type: ignore[method-assign]
    harness.reconciler.interval_s = 0.001
    running = asyncio.create_task(harness.reconciler.run())
    await asyncio.sleep(0.05)
    running.cancel()
    assert left == [0]
    assert await harness.state() == "running"
