"""The supervisor starts drivers for open orders, restarts failed ones and gives up in the end."""

import pytest
import structlog
from prometheus_client import REGISTRY

from services.trainer.documents import STALE_S, Heartbeat
from services.trainer.domain.restart_policy import RestartPolicy
from services.trainer.supervisor.backends.port import DriverLaunch, DriverStatus
from services.trainer.supervisor.driver_supervisor import DriverSupervisor
from shared.contracts.driver import DriverFailed
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.errors import Fatal, Permanent, Transient
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.trainer.run_fixtures import RUN, FakeBackend, account, beat, enter, order, run_in

OTHER = RunId("other")


def supervise(store: MemoryStore, backend: FakeBackend, attempts: int = 3) -> tuple[DriverSupervisor, list[float]]:
    now = [0.0]
    return DriverSupervisor(store, backend, attempts, lambda: now[0]), now


async def ordered(store: MemoryStore, backend: FakeBackend, attempts: int = 3) -> tuple[DriverSupervisor, list[float]]:
    """A supervisor of the run, whose first epoch is ordered, and its clock."""
    await run_in(store)
    await order(store)
    supervisor, now = supervise(store, backend, attempts)
    supervisor.register(RUN)
    return supervisor, now


def speed() -> float | None:
    return REGISTRY.get_sample_value("zelda_trainer_steps_per_second")


async def test_an_ordered_epoch_gets_one_driver() -> None:
    store, backend = MemoryStore(), FakeBackend()
    supervisor, _ = await ordered(store, backend)
    await supervisor.tick()
    await supervisor.tick()
    assert [launch.run for launch in backend.launches] == [RUN]


async def test_no_driver_without_an_open_order() -> None:
    store, backend = MemoryStore(), FakeBackend()
    await run_in(store)
    await order(store)
    await account(store, [])
    supervisor, _ = supervise(store, backend)
    supervisor.register(RUN)
    await supervisor.tick()
    assert backend.launches == []


async def test_a_failed_driver_is_followed_by_another_that_knows_its_name() -> None:
    store, backend = MemoryStore(), FakeBackend()
    supervisor, now = await ordered(store, backend)
    await supervisor.tick()
    first = backend.launches[0].name
    backend.statuses[first] = DriverStatus("failed", "killed")
    await supervisor.tick()
    assert backend.launches[1].former == first
    backend.statuses[backend.launches[1].name] = DriverStatus("failed", "killed")
    await supervisor.tick()
    assert len(backend.launches) == 2  # the second pause is not over
    now[0] = 10.0
    await supervisor.tick()
    assert len(backend.launches) == 3


async def test_a_run_whose_drivers_keep_failing_is_given_up_with_the_reason() -> None:
    store, backend = MemoryStore(), FakeBackend()
    supervisor, now = await ordered(store, backend, attempts=2)
    for _ in range(4):
        await supervisor.tick()
        now[0] += 1000.0
        for launch in backend.launches:
            backend.statuses[launch.name] = DriverStatus("failed", "the game has no ROM")
    word = DriverFailed.from_bytes(await store.get(keys.driver_failed(RUN, 1)))
    assert word.reason == "2 drivers in a row failed. the game has no ROM"
    assert len(backend.launches) == 2
    assert RUN not in supervisor.runs


async def test_a_final_failure_ends_the_run_immediately() -> None:
    store, backend = MemoryStore(), FakeBackend()
    supervisor, _ = await ordered(store, backend, attempts=5)
    await supervisor.tick()
    backend.statuses[backend.launches[0].name] = DriverStatus("failed", "The game needs your own ROM.", final=True)
    await supervisor.tick()
    word = DriverFailed.from_bytes(await store.get(keys.driver_failed(RUN, 1)))
    assert word.reason == "The game needs your own ROM."
    assert len(backend.launches) == 1
    assert RUN not in supervisor.runs


class Refuses(FakeBackend):
    """Takes no driver at all."""

    async def start(self, launch: DriverLaunch) -> None:
        await super().start(launch)
        raise Permanent("Ray's job server refused the driver of demo: no such image")

    async def status(self, name: str) -> DriverStatus:
        return DriverStatus("ended")


async def test_a_run_whose_drivers_are_refused_is_given_up_with_the_refusal() -> None:
    store, backend = MemoryStore(), Refuses()
    supervisor, now = await ordered(store, backend, attempts=2)
    for _ in range(4):
        await supervisor.tick()
        now[0] += 1000.0
    word = DriverFailed.from_bytes(await store.get(keys.driver_failed(RUN, 1)))
    assert word.reason == "2 drivers in a row failed. Ray's job server refused the driver of demo: no such image"
    assert len(backend.launches) == 2
    assert RUN not in supervisor.runs


@pytest.mark.parametrize(("figure", "whole"), [("steps", 400), ("explored", 1.0), ("evaluated", 1.0)])
async def test_progress_forgives_earlier_failures(figure: str, whole: float) -> None:
    store, backend = MemoryStore(), FakeBackend()
    supervisor, now = await ordered(store, backend, attempts=2)
    for quarters in range(1, 5):
        await supervisor.tick()
        name = backend.launches[-1].name
        further = beat(name, **{figure: whole * quarters / 4})
        await store.put(keys.driver_heartbeat(RUN), further.to_bytes())
        backend.statuses[name] = DriverStatus("failed", "killed")
        await supervisor.tick()
        now[0] += 1000.0
    assert len(backend.launches) >= 4


async def test_drivers_that_fail_at_the_same_step_are_not_forgiven() -> None:
    store, backend = MemoryStore(), FakeBackend()
    supervisor, now = await ordered(store, backend, attempts=3)
    for _ in range(5):
        await supervisor.tick()
        name = backend.launches[-1].name
        await store.put(keys.driver_heartbeat(RUN), beat(name, steps=100).to_bytes())
        backend.statuses[name] = DriverStatus("failed", "killed")
        await supervisor.tick()
        now[0] += 1000.0
    assert len(backend.launches) == 3
    assert RUN not in supervisor.runs


def test_the_pause_before_a_restart_grows_to_two_minutes() -> None:
    policy, pauses = RestartPolicy(limit=9), list[float]()
    for _ in range(8):
        policy.record_failure(1000.0, "killed")
        pauses.append(policy.not_before - 1000.0)
    assert pauses == [0.0, 5.0, 15.0, 60.0, 120.0, 120.0, 120.0, 120.0]


async def test_the_speed_is_that_of_drivers_that_explore_or_train() -> None:
    store, backend = MemoryStore(), FakeBackend()
    supervisor, now = await ordered(store, backend)
    await supervisor.tick()
    name = backend.launches[0].name
    speeds = []
    for state in ("exploring", "training", "evaluating", "training"):
        await store.put(keys.driver_heartbeat(RUN), beat(name, state=state, steps_per_s=3000).to_bytes())
        await supervisor.tick()
        speeds.append(speed())
    assert speeds == [3000, 3000, 0, 3000]
    now[0] += STALE_S + 1
    await supervisor.tick()
    assert speed() == 0  # it says nothing any more


async def test_a_killed_driver_has_no_speed_until_the_next_one_reports() -> None:
    store, backend = MemoryStore(), FakeBackend()
    supervisor, _ = await ordered(store, backend)
    speeds = []
    for _ in range(2):  # the second failure in a row is followed by a pause
        await supervisor.tick()
        name = backend.launches[-1].name
        await store.put(keys.driver_heartbeat(RUN), beat(name, steps_per_s=3000).to_bytes())
        backend.statuses[name] = DriverStatus("failed", "killed")
        await supervisor.tick()
        speeds.append(speed())
    await supervisor.tick()
    assert [*speeds, speed()] == [0, 0, 0]


async def test_a_restarted_service_adopts_a_driver_that_still_runs() -> None:
    store, backend = MemoryStore(), FakeBackend()
    await run_in(store)
    await order(store)
    await store.put(keys.driver_heartbeat(RUN), beat("demo-old").to_bytes())
    backend.statuses["demo-old"] = DriverStatus("running")
    supervisor, _ = supervise(store, backend)
    await supervisor.recover()
    await supervisor.tick()
    assert backend.launches == []
    assert supervisor.runs[RUN].driver == "demo-old"


async def test_a_finished_run_is_dropped() -> None:
    store, backend = MemoryStore(), FakeBackend()
    record = await run_in(store)
    supervisor, _ = supervise(store, backend)
    supervisor.register(RUN)
    await enter(store, record, "finished")
    await supervisor.tick()
    assert supervisor.runs == {}


async def test_a_run_with_an_unreadable_record_does_not_delay_others() -> None:
    store, backend = MemoryStore(), FakeBackend()
    odd = RunId("a-odd")
    await store.put(keys.run_index(odd), odd.encode())
    await store.put(keys.run_revision(odd, 0), b"{}")
    await run_in(store)
    await order(store)
    supervisor, _ = supervise(store, backend)
    await supervisor.recover()
    assert list(supervisor.runs) == [RUN]
    supervisor.runs.clear()
    supervisor.register(odd)  # as an event about it would
    supervisor.register(RUN)
    with structlog.testing.capture_logs() as logs:
        await supervisor.tick()
    assert [launch.run for launch in backend.launches] == [RUN]
    problems = {line["run"]: line["error"] for line in logs if line["event"] == "run supervision failed"}
    assert "cannot be read" in problems[odd]


async def test_a_run_is_supervised_again_when_its_record_is_repaired() -> None:
    store, backend = MemoryStore(), FakeBackend()
    await run_in(store)
    await order(store)
    sound = await store.get(keys.run_revision(RUN, 0))
    await store.put(keys.run_revision(RUN, 0), b"{}")
    supervisor, _ = supervise(store, backend)
    supervisor.register(RUN)
    await supervisor.tick()
    assert backend.launches == []
    await store.put(keys.run_revision(RUN, 0), sound)
    await supervisor.tick()
    assert [launch.run for launch in backend.launches] == [RUN]


async def test_a_deleted_run_is_dropped() -> None:
    supervisor, _ = supervise(MemoryStore(), FakeBackend())
    supervisor.register(RUN)
    await supervisor.tick()
    assert supervisor.runs == {}


@pytest.mark.parametrize("damage", [b"", beat("d0").to_bytes().replace(b'"training"', b'"dreaming"')])
async def test_a_run_whose_heartbeat_cannot_be_read_gets_its_driver(damage: bytes) -> None:
    store, backend = MemoryStore(), FakeBackend()
    await run_in(store)
    await order(store)
    await store.put(keys.driver_heartbeat(RUN), damage)
    supervisor, _ = supervise(store, backend)
    supervisor.register(RUN)
    await supervisor.tick()
    assert [launch.run for launch in backend.launches] == [RUN]


async def test_an_invalid_driver_name_is_neither_adopted_nor_passed_on() -> None:
    store, backend = MemoryStore(), FakeBackend()
    await run_in(store)
    await order(store)
    odd = "d0?x=;touch stolen"
    await store.put(keys.driver_heartbeat(RUN), beat("d0").to_bytes().replace(b'"d0"', f'"{odd}"'.encode()))
    backend.statuses[odd] = DriverStatus("running")
    supervisor, _ = supervise(store, backend)
    supervisor.register(RUN)
    await supervisor.tick()
    assert [launch.run for launch in backend.launches] == [RUN]
    assert supervisor.runs[RUN].driver == backend.launches[0].name
    assert backend.launches[0].former is None


class LosesAnswers(FakeBackend):
    """Starts every driver, but the answers to the first starts are lost."""

    def __init__(self, lost: int) -> None:
        super().__init__()
        self.lost = lost

    async def start(self, launch: DriverLaunch) -> None:
        await super().start(launch)
        if len(self.launches) <= self.lost:
            raise Transient("no answer")


async def test_an_unconfirmed_start_is_repeated_under_the_same_name() -> None:
    store, backend = MemoryStore(), LosesAnswers(1)
    supervisor, now = await ordered(store, backend)
    for _ in range(3):
        await supervisor.tick()
    assert len(backend.launches) == 2
    assert len({launch.name for launch in backend.launches}) == 1
    first = backend.launches[0].name
    assert supervisor.runs[RUN].driver == first
    backend.statuses[first] = DriverStatus("failed", "killed")
    now[0] = 10.0
    await supervisor.tick()
    assert backend.launches[-1].name != first


async def test_an_unconfirmed_driver_is_adopted_by_its_heartbeat() -> None:
    store, backend = MemoryStore(), LosesAnswers(2)
    supervisor, _ = await ordered(store, backend)
    await supervisor.tick()
    first = backend.launches[0].name
    await store.put(keys.driver_heartbeat(RUN), beat(first).to_bytes())
    await supervisor.tick()
    assert supervisor.runs[RUN].driver == first
    backend.statuses[first] = DriverStatus("failed", "killed")
    await supervisor.tick()
    assert [launch.name == first for launch in backend.launches] == [True, False]


async def test_fatal_errors_propagate() -> None:
    class Locked(MemoryStore):
        async def get(self, key: str, digest: str | None = None) -> bytes:
            raise Fatal("the store refuses our key")

    supervisor, _ = supervise(Locked(), FakeBackend())
    supervisor.register(RUN)
    with pytest.raises(Fatal):
        await supervisor.tick()


async def test_a_run_waits_while_all_drivers_are_taken() -> None:
    with structlog.testing.capture_logs() as logs:
        store, backend, supervisor, _ = await one_place_for_two_runs()
        await supervisor.tick()
    assert [launch.run for launch in backend.launches] == [RUN]
    waits = [(line["run"], line["error"]) for line in logs if line["event"] == "run waits for a driver"]
    assert waits == [(OTHER, "all 1 drivers are taken; raise ZELDA_TRAINER__MAX_DRIVERS if there is room for more")]
    backend.statuses[backend.launches[0].name] = DriverStatus("ended")
    await enter(store, await RunRecords(store).latest(RUN), "finished")
    await supervisor.tick()
    await supervisor.tick()
    assert [launch.run for launch in backend.launches] == [RUN, OTHER]


async def one_place_for_two_runs() -> tuple[MemoryStore, FakeBackend, DriverSupervisor, list[float]]:
    """Two ordered runs, a supervisor with one place for a driver, which the first run has, and its clock."""
    store, backend, now = MemoryStore(), FakeBackend(), [0.0]
    record, start = await run_in(store), await order(store)
    await RunRecords(store).create(record.model_copy(update={"run": OTHER}))
    await store.create(keys.epoch_start(OTHER, 0), start.model_copy(update={"run": OTHER}).to_bytes())
    supervisor = DriverSupervisor(store, backend, 3, lambda: now[0], max_drivers=1)
    await supervisor.recover()
    await supervisor.tick()
    return store, backend, supervisor, now


async def test_a_run_that_waits_for_a_driver_gives_signs_of_life() -> None:
    store, _, supervisor, now = await one_place_for_two_runs()
    signs = []
    for _ in range(60):  # half a minute
        await supervisor.tick()
        signs.append(Heartbeat.from_bytes(await store.get(keys.driver_heartbeat(OTHER))))
        now[0] += 0.5
    assert {(sign.run, sign.epoch, sign.state) for sign in signs} == {(OTHER, 0, "waiting")}
    assert len({sign.time for sign in signs}) == 3
    assert not await store.exists(keys.driver_heartbeat(RUN))  # its driver writes it


async def test_a_resume_during_a_look_at_the_ended_run_is_kept() -> None:
    store, backend = MemoryStore(), FakeBackend()
    record = await run_in(store)
    supervisor, _ = supervise(store, backend)
    supervisor.register(RUN)
    await enter(store, record, "stopped")

    class ResumedMeanwhile(RunRecords):
        async def latest(self, run: RunId) -> RunRecord:
            """Read the run; then its resume is announced."""
            found = await super().latest(run)
            supervisor.register(run)
            return found

    supervisor._records = ResumedMeanwhile(store)
    await supervisor.tick()
    assert RUN in supervisor.runs


async def test_a_restarted_supervisor_knows_the_fence_of_its_runs() -> None:
    store = MemoryStore()
    await RunRecords(store).create((await run_in(MemoryStore())).model_copy(update={"fence": 7}))
    supervisor, _ = supervise(store, FakeBackend())
    await supervisor.recover()
    assert supervisor.runs[RUN].fence == 7
