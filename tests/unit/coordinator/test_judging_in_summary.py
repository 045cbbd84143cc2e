"""The judges' own report reaches the row of its epoch, and so summary.json; without one the row says so."""

from shared.contracts.judging import Correlation, EpochJudging
from shared.contracts.progress import RunSummary
from shared.store import keys
from tests.unit.coordinator.world import BEGIN, RUN, World


async def test_the_report_of_the_judges_stands_in_the_summary() -> None:
    world = World()
    await world.ask()
    await world.rounds(2)
    for epoch in (0, 1):
        await world.train(epoch)
        await world.judge(epoch)
        if epoch == 0:
            report = EpochJudging(
                run=RUN,
                epoch=0,
                rubric="default",
                segments={"judged": 4},
                votes=12,
                correlation=Correlation(segment=0.7),
                created=BEGIN,
            )
            await world.store.put(keys.judge_report(RUN, 0), report.to_bytes())
        await world.train_reward_model(epoch)
        await world.rounds(3)
    summary = RunSummary.from_bytes(await world.store.get(keys.run_summary(RUN)))
    first, second = summary.epochs
    assert first.judging is not None
    assert first.judging.correlation.segment == 0.7
    assert second.judging is None
