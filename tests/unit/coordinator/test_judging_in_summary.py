"""The judges' own report reaches the row of its epoch, and so summary.json, however late it comes."""

from datetime import timedelta

from structlog.testing import capture_logs

from services.coordinator.epilogue import WATCHED, Epilogue
from shared.contracts.ids import JudgeName
from shared.contracts.judging import Correlation, EpochJudging, JudgeFigures
from shared.contracts.progress import EpochRow, RunSummary
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.coordinator.world import BEGIN, RUN, World


class Counting(MemoryStore):
    """A store that counts how often reports of judges are read."""

    reads = 0

    async def get(self, key: str, digest: str | None = None) -> bytes:
        self.reads += key.endswith("/judges.json")
        return await super().get(key, digest)


async def report(world: World, epoch: int = 0, *, votes: int = 12, drift: float | None = None) -> None:
    """The judges write their report on an epoch."""
    state = JudgeFigures(judged=4, abstained=0, votes=votes, drift=drift)
    written = EpochJudging(
        run=RUN,
        epoch=epoch,
        rubric="default",
        segments={"judged": 4},
        votes=votes,
        correlation=Correlation(segment=0.7),
        judges={JudgeName("state"): state},
        created=BEGIN,
    )
    await world.store.put(keys.judge_report(RUN, epoch), written.to_bytes())


async def played(kind: type[MemoryStore] = MemoryStore, **config: object) -> World:
    """A run whose first epoch has everything but its reward model."""
    world = World(kind)
    await world.ask(**config)
    await world.rounds(2)
    await world.train(0)
    await world.judge(0)
    return world


async def told(world: World, epoch: int = 0) -> list[float | None]:
    """The drift of the judge `state`, wherever people may read it: summary.json, the epoch's summary.json, the API."""
    run = RunSummary.from_bytes(await world.store.get(keys.run_summary(RUN)))
    one = EpochRow.from_bytes(await world.store.get(keys.evaluation_summary(RUN, epoch)))
    live = await world.desk.reporter.rows(await world.desk.views.read(await world.desk.runs.latest(RUN)))
    rows = [run.epochs[epoch], one, live[epoch]]
    return [row.judging.judges[JudgeName("state")].drift for row in rows if row.judging is not None]


def epilogue(world: World) -> Epilogue:
    desk = world.desk
    return Epilogue(desk.runs, desk.views, desk.reporter, lambda: world.fence, desk.now)


async def test_the_report_of_the_judges_stands_in_the_summary() -> None:
    world = await played()
    await report(world)
    await world.train_reward_model(0)
    await world.rounds(3)
    await world.whole_epoch(1)
    await world.rounds(3)
    summary = RunSummary.from_bytes(await world.store.get(keys.run_summary(RUN)))
    first, second = summary.epochs
    assert first.judging is not None
    assert first.judging.correlation.segment == 0.7
    assert second.judging is None


async def test_what_the_judges_find_after_an_epoch_is_complete_is_told_too() -> None:
    world = await played()
    await report(world, votes=9)
    await world.train_reward_model(0)
    await world.rounds()
    assert await told(world) == [None] * 3
    for drift in (0.3, 0.1):
        await report(world, drift=drift)
        await world.rounds(5)
        assert await told(world) == [drift] * 3


async def test_a_report_that_comes_after_the_end_of_its_run_is_told_too() -> None:
    world = await played(epochs=1)
    await report(world)
    await world.train_reward_model(0)
    await world.rounds(3)
    assert await world.state() == "finished"
    await report(world, drift=0.3)
    await world.rounds(3)
    await epilogue(world).round()
    assert await told(world) == [0.3] * 3


async def test_the_tables_of_an_ended_run_are_written_again_only_if_something_changed_and_not_for_ever() -> None:
    world = await played(epochs=1)
    await report(world)
    await world.train_reward_model(0)
    await world.rounds(3)
    before = await world.store.list(keys.run_prefix(RUN))
    world.time += timedelta(minutes=1)
    await epilogue(world).round()
    assert await world.store.list(keys.run_prefix(RUN)) == before
    world.time += WATCHED
    await report(world, drift=0.3)
    await epilogue(world).round()
    assert (await told(world))[0] is None


async def test_a_report_that_does_not_change_is_not_read_again() -> None:
    world = await played(Counting)
    await report(world)
    await world.train_reward_model(0)
    await world.rounds(6)
    assert isinstance(world.store, Counting)
    before = world.store.reads
    await world.rounds(50)
    assert world.store.reads == before


async def test_a_damaged_report_is_none_and_holds_up_nothing() -> None:
    world = await played()
    await world.store.put(keys.judge_report(RUN, 0), b'{"cut of')
    await world.train_reward_model(0)
    with capture_logs() as logs:
        await world.rounds(5)
    assert await told(world) == []
    assert [line["key"] for line in logs if line["log_level"] == "error"] == [keys.judge_report(RUN, 0)]
    assert (await world.start_order(1)).epoch == 1
