"""All judges on one segment, concurrently. A slow or unavailable route delays its own judge only."""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from services.judge.config import JudgeSpec
from services.judge.domain.judge_input import JudgeInput
from services.judge.service.judge import Judge
from shared.contracts.ids import Digest
from shared.contracts.scores import JudgeResult
from shared.llm.budget import BudgetTracker
from shared.llm.port import RouteUnavailable


@dataclass(frozen=True, slots=True)
class PoolResult:
    """The results of the judges that answered; `absent` maps each other judge to the error of its route.

    `seconds_since_response` is the shortest silence among the routes of absent judges.
    """

    results: tuple[JudgeResult, ...]
    absent: dict[str, str]
    seconds_since_response: float = math.inf


class JudgePool:
    """The judges of this process."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self.judges = tuple(judges)

    async def evaluate(
        self, judge_input: JudgeInput, budget: BudgetTracker, known: Sequence[JudgeResult] = ()
    ) -> PoolResult:
        """Run every judge that has no `known` result. An unavailable route is reported, not raised."""
        done = {result.judge: result for result in known}
        pending = [judge for judge in self.judges if judge.spec.name not in done]
        outcomes = await _gather_or_cancel([_evaluate(judge, judge_input, budget) for judge in pending])
        absent, silence_s = {}, math.inf
        for judge, outcome in zip(pending, outcomes, strict=True):
            if isinstance(outcome, RouteUnavailable):
                absent[str(judge.spec.name)] = str(outcome)
                silence_s = min(silence_s, judge.seconds_since_response())
            else:
                done[judge.spec.name] = outcome
        order = [judge.spec.name for judge in self.judges]
        return PoolResult(tuple(done[name] for name in order if name in done), absent, silence_s)

    def without_absent(self, results: Sequence[JudgeResult], reason: str) -> PoolResult:
        """Return the result of a pool in which only these judges answered and the others are given up."""
        done = {result.judge for result in results}
        names = [judge.spec.name for judge in self.judges]
        return PoolResult(tuple(results), {str(name): reason for name in names if name not in done})

    def with_abstentions(self, result: PoolResult) -> list[JudgeResult]:
        """Return one result per judge: absent judges abstain."""
        specs = {str(judge.spec.name): judge.spec for judge in self.judges}
        return [*result.results, *(_abstention(specs[name], why) for name, why in result.absent.items())]


async def _gather_or_cancel(
    calls: Sequence[Coroutine[None, None, JudgeResult | RouteUnavailable]],
) -> list[JudgeResult | RouteUnavailable]:
    """Await all calls. If one raises, cancel the others: their results and costs would be lost."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _evaluate(judge: Judge, judge_input: JudgeInput, budget: BudgetTracker) -> JudgeResult | RouteUnavailable:
    try:
        return await judge.evaluate(judge_input, budget)
    except RouteUnavailable as error:
        return error


def _abstention(spec: JudgeSpec, reason: str) -> JudgeResult:
    return JudgeResult(
        judge=spec.name,
        route=spec.route or "in-process",
        model=spec.model,
        prompt=Digest("0" * 64),
        status="abstained",
        reasons=[reason[:500]],
    )
