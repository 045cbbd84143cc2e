"""The models of a planner without Ray: ModelService on an event loop in a thread, which calls real servers."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from services.trainer.planning.answer_archive import AnswerArchive
from services.trainer.planning.model_service import ModelService
from services.trainer.planning.planner_file import PlannerFile
from services.trainer.planning.question import ModelAnswer, Question
from shared.contracts.driver import QUESTION_MODES
from shared.contracts.ids import RunId


def planner_file(url: str, budget: dict[str, Any] | None = None, **route: Any) -> PlannerFile:
    """All four routes at one address."""
    one = {"url": url, "model": "rules", **route}
    return PlannerFile.model_validate({"routes": dict.fromkeys(QUESTION_MODES, one), "budget": budget or {}})


class ThreadedModels:
    """An AnswerSource."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: ModelService) -> None:
        self._loop, self.service = loop, service
        self.asked: list[Question] = []

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        self.asked.append(question)
        return asyncio.run_coroutine_threadsafe(self.service.answer(question), self._loop)

    def ask(self, question: Question) -> ModelAnswer:
        return self.submit(question).result(30)


@contextmanager
def threaded_models(file: PlannerFile, archive: AnswerArchive | None = None) -> Iterator[ThreadedModels]:
    """Models behind this planner file."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    service = ModelService(file, RunId("play"), archive)
    try:
        yield ThreadedModels(loop, service)
    finally:
        asyncio.run_coroutine_threadsafe(service.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
