"""Worker processes that play rollouts. Results come back in the order of the tasks, so that their number changes
nothing but the speed.
"""

import multiprocessing
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Final, Self

from services.trainer.exploration.exploration import ExplorationPlan, Known
from services.trainer.exploration.rollout import PlayedRollout, RolloutPlayer, RolloutTask
from services.trainer.state_archive.archive import PathQuality
from services.trainer.state_archive.cell import ArchiveCell
from shared.errors import Fatal

FORGET: Final = "forget"
AHEAD: Final = 2  # tasks that wait in a worker's pipe: it need not wait for this process


@dataclass(slots=True)
class _Worker:
    """One process, its pipe, and the numbers of the tasks that it has not answered."""

    process: BaseProcess
    pipe: Connection
    waiting: list[int] = field(default_factory=list)


class RolloutWorkers:
    """`jobs` processes. Use it in a `with` block."""

    def __init__(self, jobs: int, plan: ExplorationPlan) -> None:
        context = multiprocessing.get_context("spawn")  # a forked child would share the parent's database connection
        self._workers: list[_Worker] = []
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, plan), daemon=True)
            process.start()
            theirs.close()
            self._workers.append(_Worker(process, ours))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.process.terminate()
            worker.process.join()
            worker.pipe.close()

    @property
    def processes(self) -> list[int]:
        """Ids of the processes."""
        return [worker.process.pid or 0 for worker in self._workers]

    def forget(self) -> None:
        """Forget the known cells."""
        for worker in self._workers:
            _send(worker, FORGET)

    def play(self, tasks: Sequence[RolloutTask], news: Known) -> list[PlayedRollout]:
        """Play all tasks. `news` is what became known since the last call. Raises Fatal if a worker died."""
        for worker in self._workers:
            _send(worker, news)
        results: dict[int, PlayedRollout] = {}
        upcoming = iter(enumerate(tasks))
        for _ in range(AHEAD):
            for worker in self._workers:
                _send_next(worker, upcoming)
        while len(results) < len(tasks):
            for pipe in wait([worker.pipe for worker in self._workers if worker.waiting]):
                worker = next(one for one in self._workers if one.pipe is pipe)
                results[worker.waiting[0]] = _receive(worker)
                worker.waiting.pop(0)
                _send_next(worker, upcoming)
        return [results[number] for number in range(len(tasks))]


def _send_next(worker: _Worker, upcoming: "enumerate[RolloutTask]") -> None:
    number, task = next(upcoming, (-1, None))
    if task is not None:
        worker.waiting.append(number)
        _send(worker, task)


def _send(worker: _Worker, message: Known | RolloutTask | str) -> None:
    try:
        worker.pipe.send(message)
    except OSError as error:  # its end of the pipe is closed
        raise _died(worker) from error


def _receive(worker: _Worker) -> PlayedRollout:
    try:
        result = worker.pipe.recv()
    except (EOFError, OSError) as error:
        raise _died(worker) from error
    if not isinstance(result, PlayedRollout):
        raise TypeError(f"a worker sent {type(result).__name__} instead of a result")
    return result


def _died(worker: _Worker) -> Fatal:
    worker.process.join()
    return Fatal(
        f"a process that explores ended with code {worker.process.exitcode}: its error is printed above; "
        "run the command again, it continues"
    )


def _work(pipe: Connection, plan: ExplorationPlan) -> None:
    """The worker's loop: news extend what is known, tasks are played; it ends when the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C reaches the whole group; the parent ends its workers
    player = RolloutPlayer(plan.open_game(), plan.rollout)
    known: dict[ArchiveCell, PathQuality] = {}
    while True:
        try:
            message = pipe.recv()
        except EOFError:
            return
        if isinstance(message, RolloutTask):
            pipe.send(player.play(message, known))
        elif message == FORGET:
            known.clear()
        else:
            known.update(message)
