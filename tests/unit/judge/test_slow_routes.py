"""Tools ask a judge again while its route is too slow, and keep the results of the other judges."""

import asyncio
import json

import pytest

from services.judge.config import JudgeSpec
from services.judge.offline.slow_routes import ATTEMPTS, evaluate_patiently
from services.judge.service.judge import Judge
from shared.contracts.ids import JudgeName
from shared.llm.port import Choice, Completion, CompletionRequest, RouteTimeout, RouteUnavailable
from tests.unit.judge.scripted_model import ScriptedModel
from tests.unit.judge.segment_factory import judge_input

SPEC = JudgeSpec(name=JudgeName("one"), route="r", model="m", dimensions=("progress",), votes=(1,))
GOOD = Choice(json.dumps({"reason": "a key", "progress": 4}), "stop")


class FailingModel(ScriptedModel):
    """A model whose first calls end with these errors."""

    def __init__(self, *errors: RouteUnavailable) -> None:
        super().__init__(GOOD)
        self.errors = list(errors)

    async def complete(self, question: CompletionRequest) -> Completion:
        completion = await super().complete(question)
        if self.errors:
            raise self.errors.pop(0)
        return completion


async def test_a_slow_route_is_asked_until_it_answers() -> None:
    model = FailingModel(*[RouteTimeout("no answer within 1 s")] * (ATTEMPTS - 1))
    result = await evaluate_patiently(Judge(SPEC, model), judge_input(), after=RouteTimeout)
    assert (result.status, len(model.asked)) == ("judged", ATTEMPTS)


async def test_a_route_that_never_answers_is_given_up() -> None:
    model = FailingModel(*[RouteTimeout("no answer within 1 s")] * ATTEMPTS)
    with pytest.raises(RouteTimeout):
        await evaluate_patiently(Judge(SPEC, model), judge_input())
    assert len(model.asked) == ATTEMPTS


async def test_only_the_named_errors_are_waited_for() -> None:
    away = RouteUnavailable("connection refused: no answer within reach")
    model = FailingModel(away)
    with pytest.raises(RouteUnavailable, match="connection refused"):
        await evaluate_patiently(Judge(SPEC, model), judge_input(), after=RouteTimeout)
    model = FailingModel(away)
    assert (await evaluate_patiently(Judge(SPEC, model), judge_input())).status == "judged"


async def test_a_segment_that_takes_too_long_counts_as_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    class StillModel(ScriptedModel):
        async def complete(self, question: CompletionRequest) -> Completion:
            await asyncio.sleep(60)
            return await super().complete(question)

    judge = Judge(SPEC, StillModel(GOOD))
    monkeypatch.setattr(judge, "_segment_limit_s", lambda: 0.01)
    with pytest.raises(RouteTimeout, match="mostly queueing"):
        await evaluate_patiently(judge, judge_input())
