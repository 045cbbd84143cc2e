"""Asks a judge again while its route gives no answer: a slow route needs some calls until its time limit fits."""

import asyncio
from typing import Final

from services.judge.domain.judge_input import JudgeInput
from services.judge.service.judge import Judge
from shared.contracts.scores import JudgeResult
from shared.llm.budget import Budget, BudgetTracker
from shared.llm.port import RouteUnavailable

ATTEMPTS: Final = 6


async def evaluate_patiently(
    judge: Judge, judge_input: JudgeInput, *, after: type[RouteUnavailable] = RouteUnavailable, pause_s: float = 0.0
) -> JudgeResult:
    """Return the judge's result without a budget, asking again `pause_s` after each such error.

    Raises the error of the last attempt, and RouteUnavailable of another kind than `after` immediately.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            return await judge.evaluate(judge_input, BudgetTracker(Budget()))
        except RouteUnavailable as error:
            if not left or not isinstance(error, after):
                raise
            await asyncio.sleep(pause_s)
    raise AssertionError("unreachable: the last attempt returns or raises")
