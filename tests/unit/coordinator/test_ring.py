"""The coordinator moves a run through its epochs by what others commit, never by what it remembers."""

from datetime import timedelta

import pytest

from services.coordinator.domain.decisions import CARD_GRACE, Enter, Limits, decide
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochStart
from shared.contracts.progress import RunProgress, RunSummary
from shared.store import keys
from shared.store.port import NotFound
from tests.unit.coordinator.world import RUN, World, segment


async def test_a_run_of_three_epochs_goes_from_created_to_finished() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    assert await world.state() == "running"
    assert (await world.start_order(0)).reward_model is None
    for epoch in range(3):
        await world.whole_epoch(epoch)
    await world.rounds()
    assert await world.state() == "finished"
    with pytest.raises(NotFound):
        await world.start_order(3)


async def test_the_next_epoch_is_shaped_by_the_reward_model_of_this_one() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.whole_epoch(0)
    model = (await world.start_order(1)).reward_model
    assert model is not None
    assert (model.epoch, model.weights_digest) == (0, sha256(b"weights 0"))
    assert model.card_digest == sha256(await world.store.get(keys.reward_model_card(RUN, 0)))


async def test_a_score_that_cannot_be_read_counts_as_missing_and_holds_nothing_up() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    await world.judge(0)
    await world.store.put(keys.score(RUN, 0, segment(0, 3)), b"{")
    await world.train_reward_model(0)
    await world.rounds()
    assert (await world.start_order(1)).reward_model is not None
    assert (await world.desk.tallies.of(RUN, 0)).outcomes.keys() == {segment(0, number) for number in range(3)}


async def test_a_policy_that_sees_pictures_is_shaped_by_a_model_that_reads_features() -> None:
    world = World()
    await world.ask(observation="pixels/v1")
    await world.rounds()
    await world.whole_epoch(0)
    assert (await world.start_order(1)).reward_model is not None


async def test_a_model_that_missed_its_gates_gives_way_to_the_last_good_one() -> None:
    world = World()
    await world.ask(epochs=4)
    await world.rounds()
    await world.whole_epoch(0, passed=True)
    await world.whole_epoch(1, passed=False)
    model = (await world.start_order(2)).reward_model
    assert model is not None
    assert model.epoch == 0


async def test_without_any_good_model_or_without_shaping_there_is_none() -> None:
    for config, passed in (({}, False), ({"shaping": {"mode": "none"}}, True)):
        world = World()
        await world.ask(**config)
        await world.rounds()
        await world.whole_epoch(0, passed=passed)
        assert (await world.start_order(1)).reward_model is None


async def test_the_run_waits_for_judges_and_then_for_the_reward_model() -> None:
    world = World()
    await world.ask()
    await world.rounds()
    await world.train(0)
    await world.judge(0, segments=3)
    await world.rounds(3)
    assert await doing(world) == "Epoch 0: 1 of 4 segments wait for their judges."
    await world.store.create(keys.score(RUN, 0, world.scores(0, 3).segment), world.scores(0, 3).to_bytes())
    await world.rounds()
    assert await doing(world) == "Epoch 0 waits for its reward model."
    await world.train_reward_model(0)
    await world.rounds()
    assert (await world.start_order(1)).epoch == 1


async def test_past_the_judges_deadline_the_run_goes_on_without_them() -> None:
    world = World()
    await world.ask(judge_deadline_s=100)
    await world.rounds()
    await world.train(0)
    world.time += timedelta(seconds=99) + CARD_GRACE
    await world.rounds(seconds=2)
    with pytest.raises(NotFound):
        await world.start_order(1)
    await world.rounds()
    assert (await world.start_order(1)).reward_model is None


async def test_overlap_starts_the_next_epoch_while_judges_still_work() -> None:
    world = World()
    await world.ask(overlap=True)
    await world.rounds()
    await world.train(0)
    await world.rounds()
    assert (await world.start_order(1)).reward_model is None
    await world.train(1)
    await world.rounds()
    with pytest.raises(NotFound):  # its reward model would be two epochs old
        await world.start_order(2)
    await world.judge(0)
    await world.train_reward_model(0)
    await world.rounds()
    model = (await world.start_order(2)).reward_model
    assert model is not None
    assert model.epoch == 0


async def test_hours_bound_a_run_without_a_number_of_epochs() -> None:
    world = World()
    await world.ask(epochs=None, run_hours=1)
    await world.rounds()
    await world.whole_epoch(0)
    world.time += timedelta(hours=1)
    await world.whole_epoch(1)
    assert await world.state() == "finished"


async def test_two_coordinators_at_once_order_each_epoch_once() -> None:
    world = World()
    await world.ask()
    other = world.another_coordinator(fence=2)
    await world.rounds()
    await other.rounds()
    assert (await world.start_order(0)).fence == 1
    heard = await world.trainer_hears()
    assert heard.count("rm.ready") == 1


async def test_a_coordinator_without_the_lease_does_nothing() -> None:
    world = World()
    await world.ask()
    world.fence = None
    await world.patrol.visit(RUN)
    assert await world.state() == "created"


async def test_a_coordinator_that_died_after_the_order_is_continued_by_the_next() -> None:
    world = World()
    record = await world.ask()
    order = EpochStart(run=RUN, epoch=0, fence=1, config=record.config, created=world.time)
    await world.store.create(keys.epoch_start(RUN, 0), order.to_bytes())  # the order is there, the record is as before
    other = world.another_coordinator(fence=2)
    await other.rounds(2)
    assert await world.state() == "running"
    assert (await world.start_order(0)).fence == 1


async def test_a_silent_trainer_fails_the_run_with_a_reason() -> None:
    world = World()
    await world.ask()
    await world.rounds(2)
    await world.rounds(30, seconds=30)
    assert await world.state() == "running"
    await world.rounds(2)
    record = await world.desk.runs.latest(RUN)
    assert record.state == "failed"
    assert record.reason == "The trainer gave no sign of life in epoch 0 for 15 minutes."


@pytest.mark.parametrize(("silence_s", "told"), [(30, "30 seconds"), (90, "90 seconds"), (120, "2 minutes")])
async def test_however_long_silence_may_be_the_reason_tells_it(silence_s: int, told: str) -> None:
    world = World()
    await world.ask()
    await world.rounds()
    view = await world.desk.views.read(await world.desk.runs.latest(RUN))
    limits = Limits(silence=timedelta(seconds=silence_s))
    decision = decide(view, world.time, limits, limits.silence + timedelta(seconds=1))
    assert decision == Enter("failed", f"The trainer gave no sign of life in epoch 0 for {told}.")


async def test_time_in_which_nobody_could_look_is_no_silence() -> None:
    world = World()
    await world.ask()
    await world.rounds(2)
    await world.beat()
    await world.rounds()
    world.time += timedelta(hours=8)  # the machine was suspended, and the coordinator wakes up before the driver
    await world.rounds(2)
    assert await world.state() == "running"
    await world.beat()
    await world.rounds(29, seconds=30)
    world.fence = None  # somebody else leads for a while
    world.time += timedelta(minutes=20)
    world.fence = 3
    await world.rounds()
    assert await world.state() == "running"
    await world.rounds(4, seconds=30)
    assert await world.state() == "failed"


async def test_people_find_rows_and_progress_in_the_store() -> None:
    world = World()
    await world.ask(epochs=2)
    await world.rounds()
    await world.whole_epoch(0)
    await world.train(1)
    await world.judge(1, status="dead")
    await world.rounds()
    progress = RunProgress.from_bytes(await world.store.get(keys.progress(RUN)))
    assert (progress.epoch, progress.segments_recorded, progress.segments_dead, progress.segments_left) == (1, 4, 4, 0)
    await world.train_reward_model(1, accuracy=0.75)
    await world.rounds(2)
    summary = RunSummary.from_bytes(await world.store.get(keys.run_summary(RUN)))
    assert summary.state == "finished"
    first, second = summary.epochs
    assert (first.segments_recorded, first.segments_judged, first.votes, first.agreement) == (4, 4, 12, 0.5)
    assert (first.reward_model, first.reward_model_accuracy) == (None, 0.8)
    assert (second.segments_judged, second.segments_dead, second.agreement) == (0, 4, None)
    assert (second.reward_model, second.reward_model_epoch) == (sha256(b"weights 0"), 0)
    lines = (await world.store.get(keys.scores_jsonl(RUN, 0))).splitlines()
    assert len(lines) == 4


async def test_the_scores_of_an_epoch_that_was_never_wholly_judged_are_listed_when_the_run_has_ended() -> None:
    world = World()
    await world.ask(epochs=1, judge_deadline_s=100)
    await world.rounds()
    await world.train(0)
    await world.judge(0, segments=3)
    await world.rounds()
    assert not await world.store.exists(keys.scores_jsonl(RUN, 0))
    await world.rounds(150)
    assert await world.state() == "finished"
    assert len((await world.store.get(keys.scores_jsonl(RUN, 0))).splitlines()) == 3


async def doing(world: World) -> str:
    """What people are told that the run does."""
    return RunProgress.from_bytes(await world.store.get(keys.progress(RUN))).doing
