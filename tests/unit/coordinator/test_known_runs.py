"""A pass costs what is active: ended runs are listed now and then. Each way in which a run becomes active is found."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import pytest

from services.coordinator.api.models import NewRun
from services.coordinator.domain.events import SOURCE, run_changed
from services.coordinator.domain.lifecycle import advance
from services.coordinator.handlers import Handlers
from services.coordinator.readmodels.known_runs import WATCHED
from services.coordinator.readmodels.read_models import LISTING
from services.coordinator.reconcile.finished_run_updater import FinishedRunUpdater
from shared.contracts.envelope import wrap
from shared.contracts.events import RunState
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import Transient
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import NotFound, ObjectEntry
from tests.unit.coordinator.harness import RUN, SHORT_RUN, Harness, started_run

ENDED: Final[tuple[RunState, ...]] = ("stopped", "finished", "failed")


class ObservedStore(MemoryStore):
    """Counts the objects that are read or listed; `after_listing` runs while a listing of all runs is on its way."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock=clock)
        self.read = 0
        self.after_listing: Callable[[], Awaitable[object]] | None = None

    async def get(self, key: str, digest: str | None = None) -> bytes:
        """Read an object and count it."""
        self.read += 1
        return await super().get(key, digest)

    async def list(self, prefix: str) -> list[ObjectEntry]:
        """List objects and count them."""
        found = await super().list(prefix)
        self.read += 1 + len(found)
        if prefix == keys.run_index_prefix() and self.after_listing is not None:
            act, self.after_listing = self.after_listing, None
            await act()
        return found


def observed() -> tuple[Harness, ObservedStore]:
    """A coordinator on a store whose reads are counted."""
    harness = Harness(ObservedStore)
    assert isinstance(harness.store, ObservedStore)
    return harness, harness.store


def record(harness: Harness, run: str = RUN, state: RunState = "created") -> RunRecord:
    """The first revision of a run."""
    now = harness.time
    config = RunConfig.model_validate(SHORT_RUN)
    return RunRecord(run=RunId(run), revision=0, state=state, config=config, created=now, updated=now)


def updater(harness: Harness) -> FinishedRunUpdater:
    """The updater of ended runs' reports."""
    return FinishedRunUpdater(harness.models, harness.reports, lambda: harness.fence, harness.now)


async def objects_read(ended: int) -> tuple[int, int]:
    """Objects read by ten passes without a listing, and by a pass with one, beside so many ended runs."""
    harness, store = observed()
    for number in range(ended):
        await harness.models.runs.create(record(harness, f"ended-{number}", ENDED[number % len(ENDED)]))
    harness.time += WATCHED
    await harness.create_run()
    await harness.passes(2)
    store.read = 0
    for _ in range(10):
        await harness.passes()
        await updater(harness).update_all()
    between = store.read
    harness.time += LISTING
    await harness.passes()
    return between, store.read - between


async def test_ended_runs_cost_nothing_between_two_listings() -> None:
    few, _ = await objects_read(ended=3)
    many, with_listing = await objects_read(ended=300)
    assert many == few
    assert with_listing > 300


async def test_a_run_created_here_starts_without_its_event() -> None:
    harness = Harness()
    await harness.passes()
    await harness.service.create(NewRun(run=RUN, config=RunConfig.model_validate(SHORT_RUN)), None)
    harness.bus.purge()
    await harness.passes()
    assert await harness.state() == "running"


async def test_a_run_resumed_here_goes_on_without_its_event() -> None:
    harness = await ended_run()
    await harness.service.resume(RUN)
    harness.bus.purge()
    await harness.complete_epoch(0)
    assert await harness.store.exists(keys.epoch_start(RUN, 1))


async def test_the_event_of_another_replica_names_a_run() -> None:
    harness = Harness()
    await harness.passes()
    other = harness.another_coordinator(fence=None)
    created, _ = await other.service.create(NewRun(run=RUN, config=RunConfig.model_validate(SHORT_RUN)), None)
    await Handlers(harness.reconciler).handle(wrap(run_changed(created), source=SOURCE, fence=0, time=harness.time))
    await harness.complete_epoch(0)
    assert await harness.store.exists(keys.epoch_start(RUN, 1))


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_listing_finds_what_others_wrote_without_an_event(resumed: bool) -> None:
    harness = await ended_run() if resumed else Harness()
    await harness.passes()
    other = harness.another_coordinator(fence=None)
    if resumed:
        await other.service.resume(RUN)
    else:
        await RunRecords(harness.store).create(record(harness))  # a person, or a restored copy of a store
    harness.bus.purge()
    await harness.passes()
    assert [one.run for one in harness.models.known.active()] == []
    harness.time += LISTING
    await harness.passes()
    assert [one.run for one in harness.models.known.active()] == [RUN]


async def test_a_new_leader_lists_all_runs() -> None:
    harness = Harness()
    follower = harness.another_coordinator(fence=2)
    await follower.passes()
    await harness.create_run()
    follower.fence = 3  # it lost the lease and has it again: others may have worked meanwhile
    await follower.passes()
    assert await harness.state() == "running"


async def test_a_coordinator_without_the_lease_keeps_no_runs() -> None:
    follower = Harness()
    follower.fence = None
    for number in range(3):
        wanted = NewRun(run=RunId(f"run-{number}"), config=RunConfig.model_validate(SHORT_RUN))
        await follower.service.create(wanted, None)
    await follower.passes()
    assert follower.models.known.active() == []
    follower.fence = 2
    await follower.passes()
    assert len(follower.models.known.active()) == 3, "a new lease begins with a listing"


async def test_a_clock_that_was_set_back_does_not_postpone_the_listing() -> None:
    harness = Harness()
    await harness.passes()
    await harness.create_run()
    harness.time -= timedelta(hours=1)
    await harness.passes()
    assert await harness.state() == "running"


async def test_a_run_created_during_a_listing_is_kept() -> None:
    harness, store = observed()
    wanted = NewRun(run=RUN, config=RunConfig.model_validate(SHORT_RUN))
    store.after_listing = lambda: harness.service.create(wanted, None)
    await harness.models.known.refresh(1, harness.time)
    assert [one.run for one in harness.models.known.active()] == [RUN]


async def test_an_older_record_does_not_replace_a_newer_one() -> None:
    harness = Harness()
    first = record(harness)
    harness.models.known.observe(advance(first, "running", harness.time, fence=1))
    harness.models.known.observe(first)
    assert [one.state for one in harness.models.known.active()] == ["running"]


async def test_a_deleted_run_is_forgotten_by_every_replica() -> None:
    harness = await ended_run()
    await updater(harness).update_all()
    assert [one.run for one in harness.models.known.ended_recently(harness.time)] == [RUN]
    await harness.another_coordinator(fence=None).service.delete(RUN)
    await updater(harness).update_all()
    assert harness.models.known.ended_recently(harness.time) == []


async def test_a_failed_listing_is_repeated_by_the_next_pass() -> None:
    harness, store = observed()
    await harness.create_run()

    async def fail() -> None:
        raise Transient("the store is away")

    store.after_listing = fail
    with pytest.raises(Transient):
        await harness.passes()
    await harness.passes()
    assert await harness.state() == "running"


async def ended_run() -> Harness:
    """A run that was stopped in its first epoch, and a coordinator that saw it."""
    harness = await started_run()
    await harness.service.stop(RUN)
    harness.time += timedelta(seconds=51)
    await harness.passes(2)
    assert await harness.state() == "stopped"
    return harness


async def test_the_last_progress_of_a_run_survives_its_coordinator() -> None:
    harness = await started_run()
    await harness.service.stop(RUN)
    await harness.passes()
    harness.time += timedelta(seconds=51)
    await harness.reconciler.state_machine.step(RUN, 1, lambda: harness.fence)  # it dies before it writes the reports
    harness.fence = 2
    harness.wire()
    await harness.passes()
    await updater(harness).update_all()
    shown = await harness.models.progress(RUN)
    assert shown is not None
    assert (shown.state, shown.doing) == ("stopped", "The run is stopped.")


async def test_an_event_about_no_run_leaves_nothing_in_memory() -> None:
    harness = Harness()
    with pytest.raises(NotFound):
        await harness.reconciler.reconcile(RUN)
    assert len(harness.reconciler._locks) == 0
