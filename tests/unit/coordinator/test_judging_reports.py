"""The judges' report is added to the row of its epoch, and so to summary.json, however late it is."""

from datetime import timedelta

from structlog.testing import capture_logs

from services.coordinator.readmodels.known_runs import WATCHED
from services.coordinator.reconcile.finished_run_updater import FinishedRunUpdater
from shared.contracts.ids import JudgeName
from shared.contracts.judging.epoch_report import Correlation, EpochJudging, JudgeFigures
from shared.contracts.progress import EpochRow, RunSummary
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.coordinator.counting_store import CountingStore
from tests.unit.coordinator.harness import RUN, START, Harness


async def report(harness: Harness, epoch: int = 0, *, votes: int = 12, drift: float | None = None) -> None:
    """Write the judges' report on an epoch."""
    state = JudgeFigures(judged=4, abstained=0, votes=votes, drift=drift)
    written = EpochJudging(
        run=RUN,
        epoch=epoch,
        rubric="default",
        segments={"judged": 4},
        votes=votes,
        correlation=Correlation(segment=0.7),
        judges={JudgeName("state"): state},
        created=START,
    )
    await harness.store.put(keys.judge_report(RUN, epoch), written.to_bytes())


async def judged_epoch(kind: type[MemoryStore] = MemoryStore, **config: object) -> Harness:
    """A run whose first epoch lacks only its reward model."""
    harness = Harness(kind)
    await harness.create_run(**config)
    await harness.passes(2)
    await harness.train(0)
    await harness.judge(0)
    return harness


async def shown_drift(harness: Harness, epoch: int = 0) -> list[float | None]:
    """The drift of the judge `state` in the run's summary.json, in the epoch's, and in the API."""
    run = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN)))
    one = EpochRow.from_bytes(await harness.store.get(keys.evaluation_summary(RUN, epoch)))
    live = await harness.models.rows.finished(await harness.models.views.read(await harness.models.runs.latest(RUN)))
    rows = [run.epochs[epoch], one, live[epoch]]
    return [row.judging.judges[JudgeName("state")].drift for row in rows if row.judging is not None]


def updater(harness: Harness) -> FinishedRunUpdater:
    return FinishedRunUpdater(harness.models, harness.reports, lambda: harness.fence, harness.now)


async def test_the_summary_contains_the_judging_report() -> None:
    harness = await judged_epoch()
    await report(harness)
    await harness.train_reward_model(0)
    await harness.passes(3)
    await harness.complete_epoch(1)
    await harness.passes(3)
    summary = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN)))
    first, second = summary.epochs
    assert first.judging is not None
    assert first.judging.correlation.segment == 0.7
    assert second.judging is None


async def test_a_report_after_a_complete_epoch_updates_its_row() -> None:
    harness = await judged_epoch()
    await report(harness, votes=9)
    await harness.train_reward_model(0)
    await harness.passes()
    assert await shown_drift(harness) == [None] * 3
    for drift in (0.3, 0.1):
        await report(harness, drift=drift)
        await harness.passes(5)
        assert await shown_drift(harness) == [drift] * 3


async def test_a_report_after_the_end_of_the_run_updates_its_summary() -> None:
    harness = await judged_epoch(epochs=1)
    await report(harness)
    await harness.train_reward_model(0)
    await harness.passes(3)
    assert await harness.state() == "finished"
    await report(harness, drift=0.3)
    await harness.passes(3)
    await updater(harness).update_all()
    assert await shown_drift(harness) == [0.3] * 3


async def test_an_ended_run_is_updated_only_after_changes_and_for_a_time() -> None:
    harness = await judged_epoch(epochs=1)
    await report(harness)
    await harness.train_reward_model(0)
    await harness.passes(3)
    before = await harness.store.list(keys.run_prefix(RUN))
    harness.time += timedelta(minutes=1)
    await updater(harness).update_all()
    assert await harness.store.list(keys.run_prefix(RUN)) == before
    harness.time += WATCHED
    await report(harness, drift=0.3)
    await updater(harness).update_all()
    assert (await shown_drift(harness))[0] is None


async def test_an_unchanged_report_is_read_once() -> None:
    harness = await judged_epoch(CountingStore)
    await report(harness)
    await harness.train_reward_model(0)
    await harness.passes(6)
    assert isinstance(harness.store, CountingStore)
    harness.store.reads.clear()
    await harness.passes(50)
    assert [key for key in harness.store.reads if key.endswith("/judges.json")] == []


async def test_a_damaged_report_counts_as_missing() -> None:
    harness = await judged_epoch()
    await harness.store.put(keys.judge_report(RUN, 0), b'{"cut of')
    await harness.train_reward_model(0)
    with capture_logs() as logs:
        await harness.passes(5)
    assert await shown_drift(harness) == []
    assert [line["key"] for line in logs if line["log_level"] == "error"] == [keys.judge_report(RUN, 0)]
    assert (await harness.start_order(1)).epoch == 1
