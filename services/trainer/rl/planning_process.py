"""The planning process of a run: a Ray actor beside the driver, which alone calls models (ADR 0012).

Env runners ask it by name and never wait for it: an answer is a future. It ends with the driver; Ray starts it again if
it dies alone, and questions in flight then count as unanswered.
"""

import uuid
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, cast

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from services.trainer.planning.answer_archive import AnswerArchive
from services.trainer.planning.model_service import ModelService
from services.trainer.planning.planner_file import PlannerFile
from services.trainer.planning.planner_spending import PlannerSpending
from services.trainer.planning.question import ModelAnswer, Question
from shared.config.settings import StoreSettings
from shared.contracts.driver import ModelCalls, QuestionMode
from shared.contracts.ids import RunId
from shared.errors import Fatal
from shared.store.open import open_store

NAME: Final = "planning"  # in the namespace of the driver's Ray job
MAX_QUESTIONS: Final = 1_024  # in the process; a route's own limit is far lower, and what exceeds it is answered `busy`
FIGURES_S: Final = 5.0
START_S: Final = 120.0
Calls = dict[QuestionMode, ModelCalls]


class PlanningActor:
    """ModelService as an actor. Its methods run on one event loop."""

    def __init__(self, file: PlannerFile, run: RunId, store: StoreSettings | None) -> None:
        opened = None if store is None else open_store(store)
        archive = None if opened is None else AnswerArchive(opened, run, uuid.uuid4().hex[:12])
        spending = None if opened is None else PlannerSpending(opened, run)
        self._service = ModelService(file, run, archive, spending)

    async def answer(self, question: Question) -> ModelAnswer:
        """See ModelService.answer."""
        return await self._service.answer(question)

    async def figures(self, epoch: int) -> Calls:
        """See ModelService.figures."""
        return self._service.figures(epoch)

    async def close(self) -> None:
        """See ModelService.close."""
        await self._service.close()


class PlanningProcess:
    """The driver's end: it owns the process."""

    def __init__(self, file: PlannerFile, run: RunId, store: StoreSettings | None) -> None:
        """Start the process on the driver's own node, the only one with a way to the models. Raises Fatal."""
        here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=False)
        actor: Any = ray.remote(PlanningActor)
        self._actor = actor.options(
            name=NAME, num_cpus=0, max_restarts=-1, max_concurrency=MAX_QUESTIONS, scheduling_strategy=here
        ).remote(file, run, store)
        self._epoch = 0
        self._requested: Any = None
        self._newest: Calls = {}
        try:
            ray.get(self._actor.__ray_ready__.remote(), timeout=START_S)
        except (ray.exceptions.RayError, TimeoutError) as error:
            raise Fatal(f"the planning process did not start: {error}"[:500]) from error

    def begin(self, epoch: int) -> None:
        """Let the process begin this epoch, and report on it from now on."""
        self._epoch, self._newest = epoch, {}
        self._requested = self._actor.figures.remote(epoch)

    def figures(self) -> Calls:
        """The present epoch's calls. Empty if the process does not answer: it may be starting again."""
        try:
            return cast(Calls, ray.get(self._actor.figures.remote(self._epoch), timeout=FIGURES_S))
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            return {}

    def newest_figures(self) -> Calls:
        """The calls as the process last reported them, and ask for the next report: training waits for none."""
        if self._requested is None:
            self._requested = self._actor.figures.remote(self._epoch)
        elif ray.wait([self._requested], timeout=0)[0]:
            try:
                self._newest = ray.get(self._requested)
            except ray.exceptions.RayActorError:
                self._newest = {}
            self._requested = self._actor.figures.remote(self._epoch)
        return self._newest

    def close(self) -> None:
        """Store the rest of the answers and end the process."""
        with suppress(ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):  # it ends in any case
            ray.get(self._actor.close.remote(), timeout=FIGURES_S)
        ray.kill(self._actor)


class PlanningClient:
    """An env runner's end; an AnswerSource."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        """See AnswerSource. A process that ended fails the future."""
        return cast("Future[ModelAnswer]", self._actor.answer.remote(question).future())


def connect() -> PlanningClient:
    """The planning process of this run. Raises ValueError if the driver started none."""
    return PlanningClient(ray.get_actor(NAME))
