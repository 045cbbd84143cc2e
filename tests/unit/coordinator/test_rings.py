"""Lost events are rung again from the store; events that are only slow are not."""

from datetime import timedelta

from services.coordinator.domain.pace import Pace
from shared.bus.topology import ROLES
from shared.contracts.events import EventData
from shared.store import keys
from tests.unit.coordinator.world import BEGIN, RUN, World, segment

QUIET = timedelta(seconds=30)


async def test_purged_segments_are_announced_again_and_only_those_without_outcome() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    await world.judge(0, segments=1)
    world.bus.purge()
    await world.rounds(20)
    again = [event.data.segment for event in await world.judge_hears()]  # type: ignore[attr-defined]
    assert again == [world.scores(0, number).segment for number in (1, 2, 3)]


async def test_a_lost_start_order_is_announced_again() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    world.bus.purge()
    await world.rounds(10)
    assert await world.trainer_hears() == []
    await world.rounds(10)
    assert await world.trainer_hears() == ["rm.ready"]


async def test_a_lost_stop_is_announced_again_and_no_start_order_beside_it() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.desk.stop(RUN)
    await world.rounds()
    world.bus.purge()
    await world.rounds(20)
    assert await world.state() == "stopping"
    assert await world.trainer_hears() == ["run.changed"]


async def test_a_lost_epoch_finished_reaches_the_reward_model() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    await world.judge(0)
    world.bus.purge()
    await world.rounds(20)
    heard = await world.rewardmodel_hears()
    assert [event.data.NAME for event in heard] == ["epoch.finished"]
    assert [event.data.segments for event in heard] == [4]  # type: ignore[attr-defined]


async def test_all_that_the_coordinator_says_in_a_run_is_all_that_it_may_say() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    await world.rounds(20)
    await world.desk.stop(RUN)
    heard: set[type[EventData]] = set()
    for role in ROLES.values():
        for subscription in role.subscriptions:
            heard |= {type(event.data) for event in await world.heard(subscription)}
    assert heard == set(ROLES["coordinator"].publishes)


async def test_with_overlap_the_segments_of_both_open_epochs_are_announced_again() -> None:
    world = World()
    await world.ask(overlap=True)
    await world.rounds()
    await world.train(0)
    await world.rounds()
    world.bus.purge()
    await world.rounds(20)
    assert {event.epoch for event in await world.judge_hears()} == {0}
    assert (await world.start_order(1)).epoch == 1, "which trains meanwhile"


async def test_what_is_complete_is_not_rung_however_long_the_next_epoch_is_silent() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.whole_epoch(0)
    world.bus.purge()
    await world.rounds(40)
    assert await world.trainer_hears() == ["rm.ready"]
    assert await world.rewardmodel_hears() == []


async def test_a_segment_whose_score_is_damaged_is_not_sent_to_the_judges_again() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    await world.judge(0)
    await world.store.put(keys.score(RUN, 0, segment(0, 3)), b"{")
    world.bus.purge()
    await world.rounds(20)
    assert await world.judge_hears() == []  # its outcome is committed: no other one could take its place
    assert len(await world.rewardmodel_hears()) == 1


async def test_while_judges_get_on_nothing_is_rung() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    await world.rounds()
    for number in range(3):
        await world.rounds(10)
        scores = world.scores(0, number)
        await world.store.create(f"episodes/scores/demo/epoch_0/default/{scores.segment}.json", scores.to_bytes())
    assert await world.judge_hears() == []


async def test_a_trainer_that_did_not_hear_its_order_hears_it_again_while_judges_get_on() -> None:
    world = World()
    await world.ask(overlap=True)
    await world.rounds()
    await world.train(0, segments=10)
    await world.rounds()
    await world.desk.stop(RUN)
    await world.rounds(30)
    assert await world.state() == "stopped"  # the trainer has nothing more to do with it
    await world.desk.resume(RUN)
    world.bus.purge()
    for number in range(4):
        await world.rounds(10)
        await world.judge_more(number)
    assert await world.trainer_hears() == ["rm.ready"]
    assert await world.judge_hears() == []


def test_the_pace_slows_down_and_starts_afresh_with_progress() -> None:
    pace = Pace(QUIET)
    rung = [second for second in range(0, 400, 10) if pace.due("same", BEGIN + timedelta(seconds=second))]
    assert rung == [30, 90, 210]
    assert not pace.due("other", BEGIN + timedelta(seconds=400))
    assert pace.due("other", BEGIN + timedelta(seconds=430))
