"""Lost events are rung again from the store; events that are only slow are not."""

from datetime import timedelta

from services.coordinator.reconcile.replay_backoff import ReplayBackoff
from shared.bus.topology import ROLES
from shared.contracts.events import EventData
from shared.store import keys
from tests.unit.coordinator.harness import RUN, START, Harness, segment

QUIET = timedelta(seconds=30)


async def test_purged_segments_are_announced_again_and_only_those_without_outcome() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes()
    await harness.train(0)
    await harness.judge(0, segments=1)
    harness.bus.purge()
    await harness.passes(20)
    again = [event.data.segment for event in await harness.judge_events()]  # type: ignore[attr-defined]
    assert again == [harness.scores(0, number).segment for number in (1, 2, 3)]


async def test_a_lost_start_order_is_announced_again() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes()
    harness.bus.purge()
    await harness.passes(10)
    assert await harness.trainer_events() == []
    await harness.passes(10)
    assert await harness.trainer_events() == ["rm.ready"]


async def test_a_lost_stop_is_announced_again_and_no_start_order_beside_it() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes()
    await harness.service.stop(RUN)
    await harness.passes()
    harness.bus.purge()
    await harness.passes(20)
    assert await harness.state() == "stopping"
    assert await harness.trainer_events() == ["run.changed"]


async def test_a_lost_epoch_finished_reaches_the_reward_model() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes()
    await harness.train(0)
    await harness.judge(0)
    harness.bus.purge()
    await harness.passes(20)
    heard = await harness.rewardmodel_events()
    assert [event.data.NAME for event in heard] == ["epoch.finished"]
    assert [event.data.segments for event in heard] == [4]  # type: ignore[attr-defined]


async def test_all_that_the_coordinator_says_in_a_run_is_all_that_it_may_say() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes()
    await harness.train(0)
    await harness.passes(20)
    await harness.service.stop(RUN)
    heard: set[type[EventData]] = set()
    for role in ROLES.values():
        for subscription in role.subscriptions:
            heard |= {type(event.data) for event in await harness.consume(subscription)}
    assert heard == set(ROLES["coordinator"].publishes)


async def test_with_overlap_the_segments_of_both_open_epochs_are_announced_again() -> None:
    harness = Harness()
    await harness.create_run(overlap=True)
    await harness.passes()
    await harness.train(0)
    await harness.passes()
    harness.bus.purge()
    await harness.passes(20)
    assert {event.epoch for event in await harness.judge_events()} == {0}
    assert (await harness.start_order(1)).epoch == 1, "which trains meanwhile"


async def test_what_is_complete_is_not_rung_however_long_the_next_epoch_is_silent() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes()
    await harness.complete_epoch(0)
    harness.bus.purge()
    await harness.passes(40)
    assert await harness.trainer_events() == ["rm.ready"]
    assert await harness.rewardmodel_events() == []


async def test_a_segment_whose_score_is_damaged_is_not_sent_to_the_judges_again() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes()
    await harness.train(0)
    await harness.judge(0)
    await harness.store.put(keys.score(RUN, 0, segment(0, 3)), b"{")
    harness.bus.purge()
    await harness.passes(20)
    assert await harness.judge_events() == []  # its outcome is committed: no other one could take its place
    assert len(await harness.rewardmodel_events()) == 1


async def test_while_judges_get_on_nothing_is_rung() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes()
    await harness.train(0)
    await harness.passes()
    for number in range(3):
        await harness.passes(10)
        scores = harness.scores(0, number)
        await harness.store.create(f"episodes/scores/demo/epoch_0/default/{scores.segment}.json", scores.to_bytes())
    assert await harness.judge_events() == []


async def test_a_trainer_that_did_not_hear_its_order_hears_it_again_while_judges_get_on() -> None:
    harness = Harness()
    await harness.create_run(overlap=True)
    await harness.passes()
    await harness.train(0, segments=10)
    await harness.passes()
    await harness.service.stop(RUN)
    await harness.passes(30)
    assert await harness.state() == "stopped"  # the trainer has nothing more to do with it
    await harness.service.resume(RUN)
    harness.bus.purge()
    for number in range(4):
        await harness.passes(10)
        await harness.judge_segment(number)
    assert await harness.trainer_events() == ["rm.ready"]
    assert await harness.judge_events() == []


def test_the_pace_slows_down_and_starts_afresh_with_progress() -> None:
    backoff = ReplayBackoff(QUIET)
    rung = [second for second in range(0, 400, 10) if backoff.due("same", START + timedelta(seconds=second))]
    assert rung == [30, 90, 210]
    assert not backoff.due("other", START + timedelta(seconds=400))
    assert backoff.due("other", START + timedelta(seconds=430))
