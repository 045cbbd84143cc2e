"""Fills orders in a child process that ends afterwards, so that the service never holds torch nor what it took.

A training that crashes or is killed for its memory costs that training, not the service. The child knows nothing of bus
and store.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Final

import structlog

from services.rewardmodel.errors import TrainingCancelled, TrainingFailed
from services.rewardmodel.training_protocol import TrainingRequest, TrainingResult, split_request

CHILD: Final = "services.rewardmodel.training.worker"
LOOK_S: Final = 0.1  # how often the reasons to give up are looked at
KEPT: Final = 4_000  # characters of a failed child's last words that go to the log

log = structlog.get_logger(__name__)


async def train_in_subprocess(request: TrainingRequest, should_cancel: Callable[[], bool]) -> TrainingResult:
    """Fill the request in a process of its own; raise Interrupted or TrainingFailed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", CHILD),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, "OMP_NUM_THREADS": str(request.group.threads)},
        start_new_session=True,  # ctrl-C in a terminal is for the service, which then ends the child
    )
    work = asyncio.create_task(_filled(process, request))
    try:
        while not work.done():
            if should_cancel():
                raise TrainingCancelled("a reward model training was given up; its epoch will be trained again")
            await asyncio.wait({work}, timeout=LOOK_S)
        return work.result()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        work.cancel()


async def _filled(process: Process, request: TrainingRequest) -> TrainingResult:
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise AssertionError("the child was started without its pipes")
    with contextlib.suppress(ConnectionError):  # it died; its last words say why
        for part in split_request(request):
            stdin.write(part.model_dump_json().encode() + b"\n")
            await stdin.drain()
        stdin.write(b"\n")
        await stdin.drain()
    # Standard input stays open: its end tells the child that this process is gone.
    answer, words = await asyncio.gather(stdout.read(), stderr.read())
    code = await process.wait()
    if code == 0:
        return TrainingResult.model_validate_json(answer)
    said = words.decode(errors="replace").strip()
    log.error("training process failed", code=code, said=said[-KEPT:])
    raise TrainingFailed(_sentence(code, said))


def _sentence(code: int, said: str) -> str:
    if code == -signal.SIGKILL:
        return (
            "the training process was killed (signal 9), most likely for its memory: "
            "give the service more, or lower ZELDA_REWARDMODEL__CAPACITY"
        )
    if code < 0:
        return f"the training process was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"the training process failed: {said.splitlines()[-1] if said else f'exit code {code}, no word'}"
