"""Lost events are republished from the store; slow ones are not."""

from datetime import timedelta

from prometheus_client import REGISTRY

from services.coordinator.reconcile.replay_backoff import ReplayBackoff
from shared.bus.topology import ROLES
from shared.contracts.events import EventData
from shared.store import keys
from tests.unit.coordinator.earlier_run import PLACE, add_earlier_run
from tests.unit.coordinator.harness import RUN, START, judged_epoch, segment, started_run, trained_epoch

QUIET = timedelta(seconds=30)


async def test_only_purged_segments_without_an_outcome_are_republished() -> None:
    harness = await trained_epoch()
    await harness.judge(0, segments=1)
    harness.bus.purge()
    before = REGISTRY.get_sample_value("zelda_coordinator_republished_total") or 0.0
    await harness.passes(20)
    assert REGISTRY.get_sample_value("zelda_coordinator_republished_total") == before + 4  # with the epoch
    republished = [event.data.segment for event in await harness.judge_events()]  # type: ignore[attr-defined]
    assert republished == [harness.scores(0, number).segment for number in (1, 2, 3)]


async def test_a_lost_start_order_is_republished() -> None:
    harness = await started_run()
    harness.bus.purge()
    await harness.passes(10)
    assert await harness.trainer_events() == []
    await harness.passes(10)
    assert await harness.trainer_events() == ["rm.ready"]


async def test_a_lost_stop_is_republished_without_a_start_order() -> None:
    harness = await started_run()
    await harness.service.stop(RUN)
    await harness.passes()
    harness.bus.purge()
    await harness.passes(20)
    assert await harness.state() == "stopping"
    assert await harness.trainer_events() == ["run.changed"]


async def test_a_lost_epoch_finished_is_republished() -> None:
    harness = await judged_epoch()
    harness.bus.purge()
    await harness.passes(20)
    received = await harness.rewardmodel_events()
    assert [event.data.NAME for event in received] == ["epoch.finished"]
    assert [event.data.segments for event in received] == [4]  # type: ignore[attr-defined]


async def test_the_coordinator_publishes_exactly_its_permitted_events() -> None:
    harness = await trained_epoch()
    await harness.passes(20)
    await harness.service.stop(RUN)
    await add_earlier_run(harness.store)
    await harness.service.request_export(PLACE)
    received: set[type[EventData]] = set()
    for role in ROLES.values():
        for subscription in role.subscriptions:
            received |= {type(event.data) for event in await harness.consume(subscription)}
    assert received == set(ROLES["coordinator"].publishes)


async def test_with_overlap_segments_of_the_open_epochs_are_republished() -> None:
    harness = await trained_epoch(overlap=True)
    await harness.passes()
    harness.bus.purge()
    await harness.passes(20)
    assert {event.epoch for event in await harness.judge_events()} == {0}
    assert (await harness.start_order(1)).epoch == 1, "it trains meanwhile"


async def test_a_complete_epoch_is_never_republished() -> None:
    harness = await started_run()
    await harness.complete_epoch(0)
    harness.bus.purge()
    await harness.passes(40)
    assert await harness.trainer_events() == ["rm.ready"]
    assert await harness.rewardmodel_events() == []


async def test_a_segment_with_a_damaged_score_is_not_republished() -> None:
    harness = await judged_epoch()
    await harness.store.put(keys.score(RUN, 0, segment(0, 3)), b"{")
    harness.bus.purge()
    await harness.passes(20)
    assert await harness.judge_events() == []  # its outcome is committed and cannot be replaced
    assert len(await harness.rewardmodel_events()) == 1


async def test_nothing_is_republished_while_judges_make_progress() -> None:
    harness = await trained_epoch()
    await harness.passes()
    for number in range(3):
        await harness.passes(10)
        scores = harness.scores(0, number)
        await harness.store.create(f"episodes/scores/demo/epoch_0/default/{scores.segment}.json", scores.to_bytes())
    assert await harness.judge_events() == []


async def test_a_start_order_is_republished_while_the_judges_make_progress() -> None:
    harness = await started_run(overlap=True)
    await harness.train(0, segments=10)
    await harness.passes()
    await harness.service.stop(RUN)
    await harness.passes(30)
    assert await harness.state() == "stopped"  # between two epochs, so without the trainer
    await harness.service.resume(RUN)
    harness.bus.purge()
    for number in range(4):
        await harness.passes(10)
        await harness.judge_segment(number)
    assert await harness.trainer_events() == ["rm.ready"]
    assert await harness.judge_events() == []


def test_the_backoff_grows_and_restarts_with_progress() -> None:
    backoff = ReplayBackoff(QUIET)
    republished = [second for second in range(0, 400, 10) if backoff.due("same", START + timedelta(seconds=second))]
    assert republished == [30, 90, 210]
    assert not backoff.due("other", START + timedelta(seconds=400))
    assert backoff.due("other", START + timedelta(seconds=430))


def test_a_clock_that_was_set_back_does_not_postpone_a_republication() -> None:
    backoff = ReplayBackoff(QUIET)
    assert not backoff.due("same", START + timedelta(hours=1))
    republished = [second for second in range(0, 100, 10) if backoff.due("same", START + timedelta(seconds=second))]
    assert republished == [30, 90]


async def test_slow_judges_do_not_get_their_whole_backlog_with_each_outcome() -> None:
    harness, segments = await started_run(), 12
    await harness.train(0, segments=segments)
    for number in range(segments - 1):
        await harness.passes(30)  # a minute: the model takes as long for a segment
        await harness.judge_segment(number)
    assert len(await harness.judge_events()) == segments  # once, before their pace was known


async def test_events_lost_while_judges_are_slow_are_republished() -> None:
    harness = await trained_epoch()
    for number in range(2):
        await harness.passes(30)
        await harness.judge_segment(number)
    await harness.passes()
    harness.bus.purge()
    await harness.passes(62)  # twice their pace
    assert [event.data.segment for event in await harness.judge_events()] == [segment(0, 2), segment(0, 3)]  # type: ignore[attr-defined]
