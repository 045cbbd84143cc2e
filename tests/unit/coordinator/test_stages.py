"""The stages of an epoch: where a run is, how long each took, and when the run will end."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType

import pytest

from services.coordinator.domain.stages import STAGES
from shared.contracts.driver import EVALUATION_S, DriverHeartbeat, DriverState
from shared.contracts.progress import RunProgress
from shared.store import keys
from tests.unit.coordinator.harness import RUN, Harness, started_run
from tests.unit.coordinator.test_progress import progress, row

BATCHES = 640  # steps of an epoch of 600 in batches of 64
PLAY_S, EVALUATE_S, JUDGE_S, TEACH_S = 64.0, 8.0, 20.0, 6.0
EVALUATED = MappingProxyType({EVALUATION_S: EVALUATE_S})


async def a_run(**config: object) -> Harness:
    """A run of three epochs whose first order is written."""
    harness = await started_run(**config)
    return harness


async def beat(harness: Harness, epoch: int, state: DriverState, steps: int = 0, **shares: float) -> RunProgress:
    """The progress after this heartbeat, at ten steps per second."""
    heartbeat = DriverHeartbeat(
        run=RUN, epoch=epoch, steps=steps, steps_per_s=10.0, state=state, time=harness.time, **shares
    )
    await harness.store.put(keys.driver_heartbeat(RUN), heartbeat.to_bytes())
    return await progress(harness)


async def live_through(harness: Harness, epoch: int, evaluation: Mapping[str, float] = EVALUATED) -> None:
    """One epoch at a realistic pace: 5 s to start, then play, evaluation, judges and reward model."""
    started = (await harness.start_order(epoch)).created
    harness.time = started + timedelta(seconds=5 + PLAY_S + EVALUATE_S)
    await harness.train(epoch, seconds=PLAY_S, steps=BATCHES, metrics=dict(evaluation))
    harness.time += timedelta(seconds=JUDGE_S + TEACH_S)
    await harness.judge(epoch)
    await harness.train_reward_model(epoch, seconds=TEACH_S)


async def test_a_run_passes_through_the_stages_in_order() -> None:
    harness = await a_run()
    seen = [await progress(harness)]
    seen.append(await beat(harness, 0, "training", steps=320))
    seen.append(await beat(harness, 0, "evaluating", steps=BATCHES, evaluated=0.25))
    await harness.train(0)
    await harness.judge_segment()
    seen.append(await progress(harness))
    await harness.store.delete(keys.score(RUN, 0, harness.scores(0, 1).segment))
    await harness.judge(0)
    seen.append(await progress(harness))
    assert [one.stage for one in seen] == list(STAGES)
    assert [one.stage_share for one in seen] == [None, 0.5, 0.25, 0.25, None]


async def test_a_run_that_waits_for_a_driver_says_so() -> None:
    harness = await a_run()
    found = await beat(harness, 0, "waiting")
    assert (found.stage, found.stage_share) == ("starting", None)
    assert found.doing == "Epoch 0 waits for a driver: all places are taken (ZELDA_TRAINER__MAX_DRIVERS)."


async def test_an_exploration_before_the_first_epoch_shows_how_far_it_is() -> None:
    harness = await a_run()
    found = await beat(harness, 0, "exploring", explored=0.4)
    assert (found.stage, found.stage_share) == ("starting", 0.4)
    assert found.doing == "Exploration without a network before epoch 0: 40%."
    assert found.eta_at_least, "how long exploration takes was never measured"


async def test_each_stage_of_a_finished_epoch_has_its_time() -> None:
    harness = await a_run()
    await live_through(harness, 0)
    await harness.passes()
    times = (await row(harness, 0)).stage_seconds
    assert list(times) == list(STAGES)
    assert list(times.values()) == pytest.approx([5.0, PLAY_S, EVALUATE_S, JUDGE_S, TEACH_S])


async def test_a_restarted_epoch_has_no_time_of_its_start() -> None:
    harness = await a_run()
    harness.time += timedelta(hours=3)
    await harness.train(0, attempt=2, metrics={EVALUATION_S: 1.0})
    await harness.passes()
    assert set((await row(harness, 0)).stage_seconds) == {"playing", "evaluating"}


async def test_the_remaining_time_of_a_first_epoch_is_a_lower_bound() -> None:
    shown = await beat(await a_run(), 0, "training", steps=320)
    assert shown.eta_s == pytest.approx((320 + 2 * BATCHES) / 10)
    assert shown.eta_at_least


async def test_the_first_judged_segments_say_how_long_the_judges_of_a_run_take() -> None:
    harness = await a_run(epochs=1)
    await harness.train(0)
    assert (await progress(harness)).eta_s == 0, "nobody knows yet how fast the judges are"
    finished = harness.time
    harness.time += timedelta(seconds=25)
    await harness.judge_segment()
    shown = await progress(harness)
    elapsed = (harness.time - finished).total_seconds()
    assert shown.stage_share == 0.25
    assert shown.eta_s == pytest.approx(3 * elapsed, abs=8)  # a pass takes two seconds
    assert shown.eta_at_least, "the reward model's time is still unknown"


async def test_the_remaining_time_counts_every_measured_stage() -> None:
    harness = await a_run()
    await live_through(harness, 0)
    await harness.passes()
    shown = await beat(harness, 1, "training", steps=320)
    epoch = BATCHES / 10 + EVALUATE_S + JUDGE_S + TEACH_S
    assert shown.eta_s == pytest.approx(2 * epoch - 32)
    assert not shown.eta_at_least


async def test_the_remaining_time_falls_while_the_judges_work() -> None:
    harness = await a_run(epochs=2)
    await live_through(harness, 0)
    await harness.passes()
    await harness.train(1)
    assert (await progress(harness)).eta_s == pytest.approx(JUDGE_S + TEACH_S)
    harness.time += timedelta(seconds=10)
    assert (await progress(harness)).eta_s == pytest.approx(JUDGE_S + TEACH_S - 10 - 2)  # a pass takes two


async def test_overlapping_judges_count_once() -> None:
    harness = await a_run(overlap=True)
    await live_through(harness, 0)
    await harness.passes()
    shown = await beat(harness, 1, "training")
    assert shown.eta_s == pytest.approx(2 * (BATCHES / 10 + EVALUATE_S) + JUDGE_S + TEACH_S)


async def test_the_judges_of_the_last_epoch_overlap_with_no_play() -> None:
    harness = await a_run(overlap=True, epochs=2)
    await live_through(harness, 0)
    await harness.passes()
    shown = await beat(harness, 1, "training")
    assert shown.eta_s == pytest.approx(BATCHES / 10 + EVALUATE_S + JUDGE_S + TEACH_S)


async def test_a_run_without_evaluation_needs_no_measured_one() -> None:
    harness = await a_run(eval_interval=0)
    await live_through(harness, 0, evaluation={})
    await harness.passes()
    shown = await beat(harness, 1, "training")
    assert shown.eta_s == pytest.approx(2 * (BATCHES / 10 + JUDGE_S + TEACH_S))
    assert not shown.eta_at_least


async def test_the_steps_of_an_epoch_are_whole_batches() -> None:
    shown = await beat(await a_run(), 0, "training", steps=BATCHES)
    assert (shown.steps, shown.epoch_steps, shown.stage_share) == (BATCHES, BATCHES, 1.0)


async def test_no_stage_is_more_than_done() -> None:
    shown = await beat(await a_run(), 0, "training", steps=BATCHES + 64)
    assert shown.stage_share == 1.0


async def test_clocks_that_differ_give_no_negative_times() -> None:
    """The driver's clock is behind the coordinator's, and the reward model's behind the driver's."""
    harness = await a_run()
    await harness.train(0, seconds=PLAY_S, metrics={EVALUATION_S: EVALUATE_S})
    await harness.judge(0)
    harness.time += timedelta(seconds=JUDGE_S)
    await harness.train_reward_model(0, seconds=10 * JUDGE_S)
    await harness.passes()
    times = (await row(harness, 0)).stage_seconds
    assert (times["starting"], times["judging"], times["teaching"]) == (0.0, 0.0, JUDGE_S)


async def test_an_ended_run_is_in_no_stage() -> None:
    harness = await a_run(epochs=1)
    await live_through(harness, 0)
    await harness.passes(2)
    shown = RunProgress.from_bytes(await harness.store.get(keys.progress(RUN)))
    assert (shown.state, shown.stage, shown.eta_s) == ("finished", None, None)
