"""The audit of `python -m bench.parallel_runs`: what it must find in runs that lost something or were mixed up."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from bench.parallel_runs.cpu_use import CpuOfDescendants
from bench.parallel_runs.progress import StepCurve, rates
from bench.parallel_runs.separation import RunsOnOneSystem, audit, counted, gauge_problems
from services.trainer.documents import DriverName, Heartbeat
from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.ids import RunId
from shared.contracts.scores import SegmentScores
from shared.store import keys
from tests.unit.rewardmodel.harness import RUN, Harness

PAGE = """# TYPE zelda_epoch_training_value gauge
zelda_epoch_training_value{run="demo",figure="return_mean"} 2.5
# TYPE zelda_epoch_number gauge
zelda_epoch_number{run="demo"} 1
# TYPE zelda_judge_token_bound_ratio gauge
zelda_judge_token_bound_ratio{judge="state"} 0.5
# TYPE zelda_judge_segments counter
zelda_judge_segments_total{status="judged"} 3
zelda_judge_segments_total{status="dead"} 1
"""


@pytest.fixture
async def run() -> Harness:
    """A run of two epochs with all scores and reward models."""
    made = Harness()
    for epoch in range(2):
        event = await made.play(epoch, episodes=6, each=2)
        await made.judge(epoch, await made.listed(epoch))
        await made.service().epoch_finished(event)
    return made


async def findings(run: Harness) -> RunsOnOneSystem:
    return await audit(run.store, [RUN], 2)


async def test_a_sound_run_has_no_problem(run: Harness) -> None:
    found = await findings(run)
    assert (found.problems, found.epochs, found.segments, found.judged) == ([], 2, 24, 24)


async def test_a_lost_score_is_found(run: Harness) -> None:
    await run.store.delete(keys.score(RUN, 1, (await run.listed(1))[3].segment))
    assert (await findings(run)).problems == ["demo, epoch 1: scores: 1 lost, 0 not listed, 0 twice"]


async def test_a_score_of_another_run_is_found(run: Harness) -> None:
    key = keys.score(RUN, 0, (await run.listed(0))[0].segment)
    score = SegmentScores.from_bytes(await run.store.get(key))
    await run.store.put(key, score.model_copy(update={"run": RunId("other")}).to_bytes())
    assert "is of another archive" in (await findings(run)).problems[0]


async def test_an_archive_of_another_run_is_found(run: Harness) -> None:
    first, second = (await run.listed(0))[:2]
    await run.store.put(first.key, await run.store.get(second.key))
    problems = (await findings(run)).problems
    assert "another run's" in problems[0]
    assert problems[-1] == "1 archives are in more than one run, or twice in one"


async def test_a_segment_that_is_listed_twice_is_found(run: Harness) -> None:
    key = keys.epoch_finished(RUN, 0)
    record = EpochFinishedRecord.from_bytes(await run.store.get(key))
    twice = record.model_copy(update={"segments": [*record.segments, record.segments[0]]})
    await run.store.put(key, twice.to_bytes())
    assert "1 twice" in (await findings(run)).problems[0]


def test_gauges_carry_their_run_and_its_value() -> None:
    assert gauge_problems([PAGE], {RUN: 2.5}) == []
    assert counted(PAGE, "zelda_judge_segments_total") == 4


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (PAGE.replace('zelda_epoch_number{run="demo"}', "zelda_epoch_number"), "has a series without a run"),
        (PAGE.replace("2.5", "7"), "shows 7, its record 2.5"),
        (PAGE.replace('run="demo",figure', 'run="other",figure'), "shows None"),
    ],
)
def test_a_gauge_of_another_run_is_found(page: str, sentence: str) -> None:
    (problem,) = gauge_problems([page], {RUN: 2.5})
    assert sentence in problem


BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def curve(begins: float, steps_per_s: float, epochs: int = 2) -> StepCurve:
    """Heartbeats of a run with epochs of 1,000 steps, every two seconds."""
    made = StepCurve()
    for second in range(0, 1_000, 2):
        steps = min(epochs * 1_000, int((second - begins) * steps_per_s))
        if steps >= 0:
            epoch = min(epochs - 1, steps // 1_000)
            made.add(beat(second, epoch, steps - epoch * 1_000), 1_000)
    return made


def beat(second: float, epoch: int, steps: int) -> Heartbeat:
    return Heartbeat(
        run=RUN,
        epoch=epoch,
        steps=steps,
        time=BEGAN + timedelta(seconds=second),
        driver=DriverName("one"),
        host="here",
        pid=1,
        state="training",
    )


def test_runs_together_have_the_sum_of_their_rates() -> None:
    """The second run begins 50 seconds later: only the time in which both train counts as training."""
    found = rates([curve(0, 10), curve(50, 20)], 200, 8)
    assert found.training == pytest.approx(30)
    assert found.whole == pytest.approx(4_000 / 200)
    assert found.cpu_ms == pytest.approx(2)


def test_ended_processes_count_as_used_time() -> None:
    spin = "import time\nwhile time.process_time() < 0.6: pass\ntime.sleep(60)"
    started, used = subprocess.Popen([sys.executable, "-c", spin]), CpuOfDescendants(os.getpid())
    before, deadline = used.sample(), time.monotonic() + 30
    while used.sample() - before < 0.5 and time.monotonic() < deadline:
        time.sleep(0.1)
    started.kill()
    started.wait()
    assert used.sample() - before >= 0.5


def test_runs_after_each_other_are_not_measured() -> None:
    with pytest.raises(RuntimeError, match="order more epochs"):
        rates([curve(0, 100), curve(500, 100)], 700, 8)
