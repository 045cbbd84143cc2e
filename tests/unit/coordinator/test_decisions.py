"""What a run waits for before it goes on or ends, for how long, and how its record says so."""

from datetime import timedelta

import pytest

from services.coordinator.domain.decisions import CARD_GRACE
from services.coordinator.domain.lifecycle import advance
from services.coordinator.domain.pace import LONGEST, Pace
from services.coordinator.domain.tally import Tally
from services.coordinator.domain.vigil import Vigil
from shared.contracts.driver import DriverFailed
from shared.contracts.run import LONGEST_REASON
from shared.store import keys
from shared.store.port import NotFound
from tests.unit.coordinator.world import BEGIN, RUN, World


async def begun(**config: object) -> World:
    """A run that waits for its first epoch."""
    world = World()
    await world.ask(**config)
    await world.rounds()
    return world


async def test_every_epoch_is_waited_for_and_not_only_the_first() -> None:
    world = await begun()
    await world.whole_epoch(0)
    await world.train(1)
    await world.rounds(3)
    with pytest.raises(NotFound):
        await world.start_order(2)


async def test_a_run_with_overlap_ends_only_when_its_last_two_epochs_are_judged() -> None:
    world = await begun(epochs=2, overlap=True)
    await world.train(0)
    await world.rounds()
    await world.whole_epoch(1)
    await world.rounds()
    assert await world.state() == "running"
    await world.judge(0)
    await world.train_reward_model(0)
    await world.rounds()
    assert await world.state() == "finished"


async def test_hours_are_counted_from_the_beginning_of_the_run() -> None:
    world = await begun(epochs=None, run_hours=1)
    for epoch in range(2):
        assert await world.state() == "running"
        world.time += timedelta(minutes=40)
        await world.whole_epoch(epoch)
    assert await world.state() == "finished"


@pytest.mark.parametrize(("epochs", "named"), [(1, "epoch 0"), (3, "epochs 0, 1, 2")])
async def test_a_run_says_which_of_its_epochs_were_left_at_the_deadline(epochs: int, named: str) -> None:
    world = await begun(epochs=epochs, judge_deadline_s=1)
    for epoch in range(epochs):
        await world.train(epoch)
        await world.judge(epoch)  # but no reward model was trained
        world.time += timedelta(seconds=2) + CARD_GRACE
        await world.rounds(2)
    record = await world.desk.runs.latest(RUN)
    assert (record.state, record.reason) == ("finished", f"Past the judges' deadline in {named}.")


async def test_a_driver_that_gives_up_while_its_run_is_stopped_is_told() -> None:
    world = await begun()
    await world.desk.stop(RUN)
    said = DriverFailed(run=RUN, epoch=0, attempt=1, reason="The disk is full.", time=world.time)
    await world.store.create(keys.driver_failed(RUN, 1), said.to_bytes())
    await world.rounds()
    record = await world.desk.runs.latest(RUN)
    assert (record.state, record.reason) == ("failed", "The disk is full.")


async def test_whoever_resumes_a_run_that_was_never_stopped_changes_nothing() -> None:
    world = World()
    record = await world.ask()
    assert await world.desk.resume(RUN) == record


async def test_a_record_keeps_its_highest_fence_and_a_reason_that_can_be_read_again() -> None:
    record = await World().ask()
    running = advance(record, "running", BEGIN, fence=7)
    later = advance(running, "running", BEGIN, fence=3, reason="far too long " * LONGEST_REASON)
    assert (later.fence, later.revision) == (7, 2)
    assert str(later.reason).endswith("too long ...")


def test_a_segment_counts_once_however_often_its_scores_are_added() -> None:
    world, tally = World(), Tally()
    for _ in range(3):
        tally.add(world.scores(0, 1))
    assert (tally.count("judged"), tally.votes, tally.score.count) == (1, 3, 1)


def test_a_ring_is_never_more_rare_than_ten_quiet_times() -> None:
    quiet, rung = timedelta(seconds=30), list[int]()
    pace = Pace(quiet)
    for second in range(0, 10_000, 10):
        if pace.due("same", BEGIN + timedelta(seconds=second)):
            rung.append(second)
    assert rung[-1] - rung[-2] == LONGEST * quiet.total_seconds()


def test_a_clock_that_is_set_back_takes_nothing_from_what_was_watched() -> None:
    vigil = Vigil()
    looks = [vigil.look("same", BEGIN + timedelta(seconds=seconds)) for seconds in (0, 30, 0, 30)]
    assert [watched.total_seconds() for watched in looks] == [0, 30, 30, 60]
