"""A training in a child process: it gives the same model, and its failure leaves the service running."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from services.rewardmodel.adapters.training_process import WORKER_MODULE, train_in_subprocess
from services.rewardmodel.errors import TrainingCancelled, TrainingFailed
from services.rewardmodel.training.pipeline import run_training
from services.rewardmodel.training.worker import ORPHANED
from services.rewardmodel.training_protocol import TrainingRequest
from tests.child_processes import descendant_running, descendants_running
from tests.unit.rewardmodel.harness import QUICK, Harness

ENDLESS = QUICK.model_copy(update={"steps": 100_000})


async def training_request(episodes: int = 6) -> TrainingRequest:
    """The request that the service makes after an epoch."""
    kept: list[TrainingRequest] = []

    async def refuse(wanted: TrainingRequest, should_cancel: Callable[[], bool]) -> None:
        kept.append(wanted)
        raise TrainingCancelled

    world = Harness(training=refuse)  # type: ignore[arg-type] # it never gives a product
    finished = await world.play(0, episodes=episodes)
    await world.judge(0, await world.listed(0))
    with pytest.raises(TrainingCancelled):
        await world.service().epoch_finished(finished)
    return kept[0]


async def test_a_child_process_gives_the_same_model_and_report() -> None:
    wanted = await training_request()
    here = run_training(wanted, lambda: False)
    there = await train_in_subprocess(wanted, lambda: False)
    assert there.weights == here.weights
    assert there.report == here.report
    assert there.validation_loss == here.validation_loss
    assert there.state_dict == here.state_dict


async def test_a_child_process_continues_the_previous_model() -> None:
    first = await training_request()
    before = run_training(first, lambda: False)
    after = await train_in_subprocess(first.model_copy(update={"previous": before.weights}), lambda: False)
    assert set(after.validation_loss) == {"full", "strict", "warm"}


async def test_the_error_of_a_killed_child_names_the_probable_cause() -> None:
    wanted = (await training_request()).model_copy(update={"group": ENDLESS})
    training = asyncio.create_task(train_in_subprocess(wanted, lambda: False))
    os.kill(await descendant_running(WORKER_MODULE), signal.SIGKILL)
    with pytest.raises(TrainingFailed, match=r"was killed \(signal 9\), probably for its memory: raise the service"):
        await asyncio.wait_for(training, 20)


async def test_the_error_of_a_crashed_child_quotes_its_last_line() -> None:
    wanted = await training_request()
    broken = [replace(features, packed=b"broken") for features in wanted.features]
    with pytest.raises(TrainingFailed, match=r"the training process failed: zlib\.error"):
        await train_in_subprocess(wanted.model_copy(update={"features": broken}), lambda: False)


async def test_a_stopping_service_kills_its_child() -> None:
    wanted = (await training_request()).model_copy(update={"group": ENDLESS})
    stopping = asyncio.Event()
    training = asyncio.create_task(train_in_subprocess(wanted, stopping.is_set))
    await descendant_running(WORKER_MODULE)
    stopping.set()
    with pytest.raises(TrainingCancelled, match="cancelled"):
        await asyncio.wait_for(training, 5)
    assert descendants_running(WORKER_MODULE) == []


async def test_a_cancelled_handler_leaves_no_child_process() -> None:
    wanted = (await training_request()).model_copy(update={"group": ENDLESS})
    training = asyncio.create_task(train_in_subprocess(wanted, lambda: False))
    await descendant_running(WORKER_MODULE)
    training.cancel()
    with pytest.raises(asyncio.CancelledError):
        await training
    assert descendants_running(WORKER_MODULE) == []


async def test_a_child_exits_when_its_parent_is_gone() -> None:
    wanted = (await training_request()).model_copy(update={"group": ENDLESS})
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", WORKER_MODULE, stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(wanted.model_dump_json().encode() + b"\n\n")
    await process.stdin.drain()
    process.stdin.close()  # as the kernel does when a process is killed
    assert await asyncio.wait_for(process.wait(), 30) == ORPHANED
