"""All judges on one segment, at once. One slow or absent route holds up its own part only."""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from services.judge.config import JudgeSpec
from services.judge.domain.budget import BudgetTracker
from services.judge.domain.judge_input import JudgeInput
from services.judge.ports import RouteUnavailable
from services.judge.service.judge import Judge
from shared.contracts.ids import Digest
from shared.contracts.scores import JudgeResult


@dataclass(frozen=True, slots=True)
class PoolResult:
    """Results of the judges that gave one, and for the others why their route gave nothing.

    `silent_s` says how long none of the absent ones' routes has answered anything.
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
        """Ask every judge that is not among `known` results; an absent route is reported, not raised."""
        done = {result.judge: result for result in known}
        asked = [judge for judge in self.judges if judge.spec.name not in done]
        outcomes = await _evaluate_all([_evaluate(judge, judge_input, budget) for judge in asked])
        absent, seconds_since_response = {}, math.inf
        for judge, outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, RouteUnavailable):
                absent[str(judge.spec.name)] = str(outcome)
                seconds_since_response = min(seconds_since_response, judge.seconds_since_response())
            else:
                done[judge.spec.name] = outcome
        order = [judge.spec.name for judge in self.judges]
        return PoolResult(tuple(done[name] for name in order if name in done), absent, seconds_since_response)

    def without(self, results: Sequence[JudgeResult], reason: str) -> PoolResult:
        """The verdict when only these judges gave a result, and nobody asks the others any more."""
        done = {result.judge for result in results}
        return PoolResult(tuple(results), {str(j.spec.name): reason for j in self.judges if j.spec.name not in done})

    def results(self, verdict: PoolResult) -> list[JudgeResult]:
        """The results of all judges; an absent one abstains."""
        specs = {str(judge.spec.name): judge.spec for judge in self.judges}
        return [*verdict.results, *(_absent(specs[name], why) for name, why in verdict.absent.items())]


async def _evaluate_all(
    calls: Sequence[Coroutine[None, None, JudgeResult | RouteUnavailable]],
) -> list[JudgeResult | RouteUnavailable]:
    """All outcomes. If one raises, the others end with it: nobody would keep what they say, nor book what they cost."""
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


def _absent(spec: JudgeSpec, reason: str) -> JudgeResult:
    """A judge whose route stayed away for longer than anybody wants to wait: abstained, with the reason."""
    return JudgeResult(
        judge=spec.name,
        route=spec.route or "in-process",
        model=spec.model,
        prompt=Digest("0" * 64),
        status="abstained",
        reasons=[reason[:500]],
    )
