"""Series of a run stay while it is active, and go some minutes after its end."""

import asyncio
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry, Gauge

from shared.contracts.events import RunState
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import Transient
from shared.state import run_series
from shared.state.run_series import RunSeries
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import ObjectEntry
from tests.unit.shared.loop import until

RUNNING, ENDED, DELETED, DAMAGED = (RunId(name) for name in ("running", "ended", "deleted", "damaged"))
EVERY = (RUNNING, ENDED, DELETED, DAMAGED)
NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.fixture
def gauge() -> Gauge:
    registry = CollectorRegistry()
    return Gauge("figure", "of a run", ["run", "judge"], registry=registry)


def shown(gauge: Gauge) -> set[str]:
    return {sample.labels["run"] for family in gauge.collect() for sample in family.samples}


async def records(store: MemoryStore) -> RunRecords:
    found = RunRecords(store)
    states: dict[RunId, RunState] = {RUNNING: "running", ENDED: "finished"}
    for run, state in states.items():
        await found.create(RunRecord(run=run, revision=0, state=state, config=RunConfig(), created=NOW, updated=NOW))
    await store.create(keys.run_revision(DAMAGED, 0), b"{")
    return found


async def test_series_go_in_the_second_pass_that_finds_the_run_ended(gauge: Gauge) -> None:
    runs, series = await records(MemoryStore()), RunSeries(gauge)
    for run in EVERY:
        gauge.labels(run, "state").set(1)
        gauge.labels(run, "vision").set(1)
        series.show(run)
    await series.remove_ended(runs)
    assert shown(gauge) == set(EVERY), "a server that scrapes every 30 seconds sees the last figures"
    await series.remove_ended(runs)
    assert shown(gauge) == series.shown == {RUNNING, DAMAGED}


async def test_a_run_that_is_resumed_in_between_keeps_its_series(gauge: Gauge) -> None:
    runs, series = await records(MemoryStore()), RunSeries(gauge)
    gauge.labels(ENDED, "state").set(1)
    series.show(ENDED)
    await series.remove_ended(runs)
    record = await runs.latest(ENDED)
    await runs.append(record.model_copy(update={"revision": 1, "state": "running"}))
    await series.remove_ended(runs)
    await series.remove_ended(runs)
    assert shown(gauge) == {ENDED}


async def test_an_outage_of_the_store_delays_the_removal_only(gauge: Gauge, monkeypatch: pytest.MonkeyPatch) -> None:
    store, series = AbsentStore(), RunSeries(gauge)
    monkeypatch.setattr(run_series, "PASS_S", 0.0)
    series.show(ENDED)
    watching = asyncio.create_task(series.watch(store))
    await until(lambda: store.asked > 1)
    assert not watching.done()
    watching.cancel()


class AbsentStore(MemoryStore):
    """A store that does not answer."""

    asked = 0

    async def list(self, prefix: str) -> list[ObjectEntry]:
        self.asked += 1
        raise Transient("the store is away")
