"""Runs a training in a child process that exits afterwards, so that the service never holds torch or its memory.

A training that crashes, or that the kernel kills for its memory, leaves the service running. The child has no access to
bus and store.
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

WORKER_MODULE: Final = "services.rewardmodel.training.worker"
POLL_S: Final = 0.1  # interval of checking for cancellation
LOGGED_CHARACTERS: Final = 4_000  # of a failed child's error output

log = structlog.get_logger(__name__)


async def train_in_subprocess(request: TrainingRequest, should_cancel: Callable[[], bool]) -> TrainingResult:
    """Train in a process of its own; raise TrainingCancelled or TrainingFailed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", WORKER_MODULE),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, "OMP_NUM_THREADS": str(request.group.threads)},
        start_new_session=True,  # ctrl-C in a terminal reaches only the service, which then kills the child
    )
    exchange = asyncio.create_task(_exchange(process, request))
    try:
        while not exchange.done():
            if should_cancel():
                raise TrainingCancelled
            await asyncio.wait({exchange}, timeout=POLL_S)
        return exchange.result()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        exchange.cancel()


async def _exchange(process: Process, request: TrainingRequest) -> TrainingResult:
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise AssertionError("the child was started without its pipes")
    with contextlib.suppress(ConnectionError):  # the child died; its error output says why
        for chunk in split_request(request):
            stdin.write(chunk.model_dump_json().encode() + b"\n")
            await stdin.drain()
        stdin.write(b"\n")
        await stdin.drain()
    # Standard input stays open: the child takes its end of file as the end of this process.
    result, errors = await asyncio.gather(stdout.read(), stderr.read())
    code = await process.wait()
    if code == 0:
        return TrainingResult.model_validate_json(result)
    output = errors.decode(errors="replace").strip()
    log.error("training process failed", code=code, output=output[-LOGGED_CHARACTERS:])
    raise TrainingFailed(_failure(code, output))


def _failure(code: int, output: str) -> str:
    if code == -signal.SIGKILL:
        return (
            "the training process was killed (signal 9), probably for its memory: "
            "raise the service's memory limit, or lower ZELDA_REWARDMODEL__CAPACITY"
        )
    if code < 0:
        return f"the training process was terminated by signal {-code} ({signal.strsignal(-code)})"
    return f"the training process failed: {output.splitlines()[-1] if output else f'exit code {code}, no output'}"
