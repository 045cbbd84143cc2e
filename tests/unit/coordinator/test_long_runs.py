"""Runs of hundreds of epochs, deleted and recreated runs, and the bounds of caches."""

import asyncio
from datetime import timedelta

import pytest

from services.coordinator.domain.decisions import CARD_GRACE
from services.coordinator.domain.run_view import RunView
from services.coordinator.readmodels.read_models import LISTING
from services.coordinator.readmodels.run_cache import MAX_ENDED, UNUSED_S, RunCache
from shared.contracts.ids import RunId
from shared.contracts.progress import RunSummary
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import Transient
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import ObjectEntry
from tests.unit.coordinator.counting_store import CountingStore
from tests.unit.coordinator.harness import RUN, START, Harness, started_run


async def test_120_unjudged_epochs_end_in_a_readable_record() -> None:
    harness = await started_run(epochs=120, judge_deadline_s=1)
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
    harness = await started_run(epochs=1 if ended else 3)
    await harness.complete_epoch(0)
    await harness.passes()
    await delete(harness)
    await harness.passes()
    assert await harness.models.runs.all() == []
    await harness.create_run(epochs=2)
    harness.time += LISTING
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


def record(number: int, state: str) -> RunRecord:
    """A run in this state."""
    values = {"run": RunId(f"run-{number}"), "revision": 0, "state": state, "config": RunConfig()}
    return RunRecord.model_validate(values | {"created": START, "updated": START})


def test_an_active_run_that_is_not_read_any_more_is_dropped() -> None:
    now = [0.0]
    cache: RunCache[list[int]] = RunCache(list, lambda: now[0])
    cache.get(record(0, "running")).append(0)
    cache.get(record(1, "running")).append(1)
    for _ in range(4):  # the leader reads run 1 again and again
        now[0] += UNUSED_S / 2
        assert cache.get(record(1, "running")) == [1]
    assert cache.get(record(0, "running")) == []


def test_only_recently_used_ended_runs_stay_cached() -> None:
    cache: RunCache[list[int]] = RunCache(list)
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
    for _ in range(1_000):
        await asyncio.sleep(0.005)
        if not left[0] and await harness.state() == "running":
            break
    running.cancel()
    assert (left, await harness.state()) == ([0], "running")


async def view(harness: Harness) -> RunView:
    """The run as the store shows it."""
    return await harness.models.views.read(await harness.models.runs.latest(RUN))


async def test_a_restarted_coordinator_reads_no_score_of_complete_epochs() -> None:
    harness = Harness(CountingStore)
    await harness.create_run()
    await harness.passes()
    for epoch in range(3):
        await harness.complete_epoch(epoch, passed=False)
    await harness.passes()
    before = await harness.models.rows.finished(await view(harness))
    harness.wire()
    assert isinstance(harness.store, CountingStore)
    harness.store.reads.clear()
    after = await harness.models.rows.finished(await view(harness))
    assert after == before
    assert after[1].not_shaped is not None
    assert [key for key in harness.store.reads if key.startswith(keys.EPISODES)] == []


async def test_a_restarted_coordinator_reads_no_old_score_of_an_active_run() -> None:
    harness = Harness(CountingStore)
    await harness.create_run(epochs=5)
    await harness.passes()
    for epoch in range(4):
        await harness.complete_epoch(epoch)
    harness.wire()
    assert isinstance(harness.store, CountingStore)
    harness.store.reads.clear()
    await harness.passes()
    assert [key for key in harness.store.reads if "/scores/" in key and "/epoch_3/" not in key] == []
    assert keys.run_summary(RUN) in harness.store.reads


async def ended_run(kind: type[MemoryStore] = CountingStore) -> Harness:
    """A finished run of three epochs, and a coordinator that has read nothing yet."""
    harness = Harness(kind)
    await harness.create_run()
    await harness.passes()
    for epoch in range(3):
        await harness.complete_epoch(epoch, passed=False)
    await harness.passes()
    assert await harness.state() == "finished"
    harness.wire()
    return harness


async def test_an_ended_run_is_shown_from_its_summary_alone() -> None:
    harness = await ended_run()
    assert isinstance(harness.store, CountingStore)
    record = await harness.models.runs.latest(RUN)
    harness.store.reads.clear()
    rows = await harness.models.epochs(record)
    assert harness.store.reads == [keys.run_summary(RUN)]
    assert rows == await harness.models.rows.finished(await view(harness))
    assert all(one is other for one, other in zip(rows, await harness.models.epochs(record), strict=True))


async def test_an_ended_runs_later_figures_are_shown() -> None:
    harness = await ended_run()
    record = await harness.models.runs.latest(RUN)
    await harness.models.epochs(record)
    summary = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN)))
    changed = [row.model_copy(update={"votes": 99}) for row in summary.epochs]
    await harness.store.put(keys.run_summary(RUN), summary.model_copy(update={"epochs": changed}).to_bytes())
    assert [row.votes for row in await harness.models.epochs(record)] == [99] * 3


@pytest.mark.parametrize("lacking", [{"not_shaped": None}, {"reason": None}])
async def test_the_summary_of_an_earlier_version_gets_its_reasons(lacking: dict[str, None]) -> None:
    harness = await ended_run()
    summary = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN)))
    earlier = [row.model_copy(update=lacking) for row in summary.epochs]
    await harness.store.put(keys.run_summary(RUN), summary.model_copy(update={"epochs": earlier}).to_bytes())
    assert await harness.models.epochs(await harness.models.runs.latest(RUN)) == summary.epochs


@pytest.mark.parametrize("raw", [b"{", None])
async def test_a_run_without_a_readable_summary_is_shown_from_its_documents(raw: bytes | None) -> None:
    harness = await ended_run()
    before = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN))).epochs
    if raw is None:
        await harness.store.delete(keys.run_summary(RUN))
    else:
        await harness.store.put(keys.run_summary(RUN), raw)
    assert await harness.models.epochs(await harness.models.runs.latest(RUN)) == before


async def test_a_resumed_run_is_not_shown_from_its_summary() -> None:
    harness = await started_run()
    await harness.complete_epoch(0)
    await harness.service.stop(RUN)
    harness.time += timedelta(minutes=2)
    await harness.passes(3)
    record = await harness.models.runs.latest(RUN)
    assert await harness.models.ended.read(record) is not None
    await harness.service.resume(RUN)
    assert await harness.models.ended.read(await harness.models.runs.latest(RUN)) is None


async def test_a_summary_of_a_deleted_run_of_the_same_name_is_ignored() -> None:
    harness = await started_run()
    await harness.complete_epoch(0)
    raw = await harness.store.get(keys.run_summary(RUN))
    other = RunSummary.from_bytes(raw).model_copy(update={"created": harness.time, "epochs": []})
    wrong = RunSummary.from_bytes(raw).epochs[0].model_copy(update={"votes": 999})
    await harness.store.put(keys.run_summary(RUN), other.model_copy(update={"epochs": [wrong]}).to_bytes())
    harness.wire()
    (row,) = await harness.models.rows.finished(await view(harness))
    assert row.votes == 12
