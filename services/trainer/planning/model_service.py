"""Answers questions with models: one route per mode, within the budgets of the planner file.

It runs in the planning process of a run (rl/planning_process.py), so breakers, budgets and limits exist once.
"""

import asyncio
import time
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import structlog

from services.trainer.planning.answer_archive import AnswerArchive
from services.trainer.planning.plan_prompt import messages, response_schema
from services.trainer.planning.planner_file import PlannerFile, PlannerRoute
from services.trainer.planning.planner_spending import PlannerSpending
from services.trainer.planning.question import ModelAnswer, Question
from shared.contracts.driver import NEEDS, QUESTION_MODES, AnswerStatus, ModelCalls, QuestionMode
from shared.contracts.ids import RunId
from shared.contracts.scores import Usage
from shared.llm.budget import BudgetExhausted, BudgetTracker
from shared.llm.port import Completion, CompletionRequest, RequestRefused, RouteUnavailable
from shared.llm.route import RouteClient
from shared.llm.route_metrics import RouteMetrics
from shared.llm.spending import Payment, complete_within_budget
from shared.llm.tokens import TEMPLATE_TOKENS, image_token_bound, token_bound

ROUTES: Final = RouteMetrics("planner")
PICTURE: Final = (320, 288)  # pixels of a picture
BUSY_PAUSE_S: Final = 0.5  # much shorter, and a full route is asked in every step
AWAY_PAUSE_S: Final = 1.0  # after a failed call whose route's breaker is still closed
LASTING_PAUSE_S: Final = 60.0  # after a refusal or an exhausted budget, which the next seconds do not change

log = structlog.get_logger(__name__)


class ModelService:
    """The models of one run. For one event loop."""

    def __init__(
        self,
        file: PlannerFile,
        run: RunId,
        archive: AnswerArchive | None = None,
        spending: PlannerSpending | None = None,
    ) -> None:
        """`archive` keeps the answers if the file says so; `spending` the cost of calls, for a file with limits."""
        self._file, self._run = file, run
        self._archive = archive if file.keep_answers else None
        self._spending = spending if file.budget.limited else None
        self.routes = {mode: RouteClient(mode, spec, ROUTES) for mode, spec in file.routes.items()}
        self._epoch = -1
        self._budgets: dict[QuestionMode, BudgetTracker] = {}
        self._counts: Counter[tuple[QuestionMode, AnswerStatus]] = Counter()
        self._seconds: dict[QuestionMode, float] = {}

    async def answer(self, question: Question) -> ModelAnswer:
        """Answer a question. Never raises for a model's fault: the answer says what it was."""
        self._begin(question.epoch)
        client = self.routes.get(question.mode)
        if client is None:
            missing = f"the planner file has no route {question.mode}"
            answer = ModelAnswer("refused", detail=missing, pause_s=LASTING_PAUSE_S)
        elif client.in_flight + client.queued >= self._file.routes[question.mode].max_concurrent:
            answer = ModelAnswer("busy", detail=f"route {question.mode} is full", pause_s=BUSY_PAUSE_S)
        else:
            answer = await self._ask(client, question)
        self._count(question.mode, answer)
        if answer.status == "answered" and self._archive is not None:
            self._archive.keep(question, answer)
        return answer

    def figures(self, epoch: int) -> dict[QuestionMode, ModelCalls]:
        """The epoch's questions by mode and outcome, their mean time, and the state of each breaker."""
        self._begin(epoch)
        return {mode: self._calls(mode, client) for mode, client in self.routes.items()}

    async def close(self) -> None:
        """Store the rest of the answers and the spending, and close all connections."""
        await asyncio.gather(*(kept.close() for kept in (self._archive, self._spending) if kept is not None))
        for client in self.routes.values():
            await client.close()

    def _begin(self, epoch: int) -> None:
        """Every epoch has its own budgets and figures; a late question counts in the present one."""
        if epoch <= self._epoch:
            return
        self._epoch = epoch
        planner = BudgetTracker(self._file.budget.planner, owner="planner")
        guidance = BudgetTracker(self._file.budget.guidance, owner="guidance")
        self._budgets = {mode: planner if mode in NEEDS else guidance for mode in QUESTION_MODES}
        self._counts, self._seconds = Counter(), {}
        if self._spending is not None:
            self._spending.begin(epoch, self._budgets)

    async def _ask(self, client: RouteClient, question: Question) -> ModelAnswer:
        spec = self._file.routes[question.mode]
        try:
            completion = await complete_within_budget(
                client,
                CompletionRequest(request_body(question, spec), 1, question.seed, self._run),
                upper_bound(question, spec),
                Payment(self._budgets[question.mode], question.mode, spec.prices, lambda usage: None),
            )
        except BudgetExhausted as error:
            return ModelAnswer("exhausted", detail=str(error), pause_s=LASTING_PAUSE_S)
        except RequestRefused as error:
            log.warning("question refused", mode=question.mode, error=str(error))
            return ModelAnswer("refused", detail=str(error), pause_s=LASTING_PAUSE_S)
        except RouteUnavailable as error:
            return ModelAnswer("unavailable", detail=str(error), pause_s=self._pause_s(client))
        return read_completion(completion)

    def _calls(self, mode: QuestionMode, client: RouteClient) -> ModelCalls:
        outcomes = {status: count for (asked, status), count in self._counts.items() if asked == mode}
        answered = outcomes.get("answered", 0)
        mean = self._seconds[mode] / answered if answered else None
        return ModelCalls(outcomes=outcomes, answer_seconds_mean=mean, breaker=client.breaker.state(time.monotonic()))

    def _pause_s(self, client: RouteClient) -> float:
        """Until the breaker admits a probe; only one of many questions may be that."""
        return max(AWAY_PAUSE_S, client.seconds_until_probe())

    def _count(self, mode: QuestionMode, answer: ModelAnswer) -> None:
        self._counts[mode, answer.status] += 1
        if answer.status == "answered":
            self._seconds[mode] = self._seconds.get(mode, 0.0) + answer.seconds


def request_body(question: Question, spec: PlannerRoute) -> dict[str, Any]:
    """The request without its seed."""
    return {
        "model": spec.model,
        "messages": messages(question),
        "temperature": spec.temperature,
        "max_tokens": spec.max_output_tokens,
        "response_format": response_schema(question.mode),
    }


def upper_bound(question: Question, spec: PlannerRoute) -> Usage:
    """What the call costs at most."""
    parts = messages(replace(question, picture=None))
    tokens = sum(token_bound(part["content"]) for part in parts) + 2 * TEMPLATE_TOKENS
    pictures = 0 if question.picture is None else image_token_bound(*PICTURE)
    return Usage(calls=1, prompt_tokens=tokens + pictures, output_tokens=spec.max_output_tokens)


def read_completion(completion: Completion) -> ModelAnswer:
    """The reply of a completion; `invalid` if it is not one whole text."""
    choice = completion.choices[0] if completion.choices else None
    if choice is None or not isinstance(choice.content, str):
        return ModelAnswer("invalid", detail="the reply has no text", seconds=completion.seconds)
    if choice.finish_reason == "length":
        return ModelAnswer("invalid", detail="the reply was cut off by the token limit", seconds=completion.seconds)
    return ModelAnswer("answered", choice.content, seconds=completion.seconds)
