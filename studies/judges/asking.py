"""Asks the judges of a file about segments of the bank, and keeps each answer before the next question."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from services.judge.config import JudgesFile, weights_in
from services.judge.domain.facts.timeline import render
from services.judge.domain.judge_input import JudgeInput
from services.judge.domain.phases import weighted_mean
from services.judge.offline.slow_routes import evaluate_patiently
from services.judge.runtime import JudgeRuntime
from services.judge.service.judge import Judge
from services.judge.service.loader import LoadedSegment
from services.judge.service.monitor import judge_of_pairs
from services.judge.settings import JudgeGroup
from shared.contracts.scores import JudgeResult, values_of
from shared.llm.budget import Budget, BudgetTracker
from shared.llm.port import RouteUnavailable
from shared.store.memory import MemoryStore
from studies.judges.answers import Answer, AnswersError, AnswersFile
from studies.judges.bank import Bank, BankError, BankSegment
from studies.judges.pairs import PairAnswer, PairAnswers
from studies.judges.replay import BankReplay
from studies.judges.variants import Variant, varied

RETRY_S: Final = 2.0
WHOLE: Final = 1_000_000  # tokens: no fact is left out where the length of the text is measured


class BankPanel:
    """The judges of a file, asked about the bank. `slots` questions are asked at the same time."""

    def __init__(self, bank: Bank, file: JudgesFile, slots: int = 1) -> None:
        store = MemoryStore()
        self._file = file
        self._runtime = JudgeRuntime(store, file, JudgeGroup(cache_size=0), monitoring=False)
        self._replay = BankReplay(bank, self._runtime.loader, store)
        self._slots = asyncio.Semaphore(slots)
        self._loading = asyncio.Lock()

    async def ask(
        self, segments: Sequence[BankSegment], variant: Variant, kept: AnswersFile, on_answer: Callable[[Answer], None]
    ) -> None:
        """Ask about each segment that has no answer yet.

        Raises RouteUnavailable if a route stays silent, and BankError if play takes another course than the bank says.
        """
        asked = kept.of(variant)

        async def one(segment: BankSegment) -> None:
            async with self._slots:
                answer = await self._answer(segment, variant)
                kept.add(answer)
                on_answer(answer)

        try:
            await self._runtime.probe_routes(retry=False)
            async with asyncio.TaskGroup() as group:
                for segment in segments:
                    if segment.name not in asked:
                        group.create_task(one(segment))
        except* (RouteUnavailable, BankError) as errors:
            raise errors.exceptions[0] from None
        finally:
            await self._runtime.close()

    async def compare(
        self,
        pairs: Sequence[tuple[BankSegment, BankSegment]],
        kept: PairAnswers,
        on_answer: Callable[[PairAnswer], None],
    ) -> None:
        """Ask the judge of pairs about each pair that has no answer yet, in both orders. Raises as `ask`."""
        judge = judge_of_pairs(self._runtime.pool)
        if judge is None:
            raise AnswersError("no judge rates progress, and that one compares pairs: add one to the judges file")
        try:
            await self._runtime.probe_routes(retry=False)
            for first, second in pairs:
                if kept.lacks(first, second):
                    kept.add(answer := await self._compare(judge, first, second))
                    on_answer(answer)
        finally:
            await self._runtime.close()

    async def _compare(self, judge: Judge, first: BankSegment, second: BankSegment) -> PairAnswer:
        one, other = [(await self._replay.load(segment)).judge_input for segment in (first, second)]
        begun = time.monotonic()
        budget = BudgetTracker(Budget())
        votes = [(await judge.weigh(*clips, budget)).vote for clips in ((one, other), (other, one))]
        shares = [None if vote is None else (vote.first, vote.equal, vote.second) for vote in votes]
        seconds = round(time.monotonic() - begun, 3)
        return PairAnswer(first=first.name, second=second.name, forward=shares[0], backward=shares[1], seconds=seconds)

    async def _answer(self, segment: BankSegment, variant: Variant) -> Answer:
        async with self._loading:  # one replay at a time
            loaded = await self._replay.load(segment)
        judge_input = _varied(loaded, variant)
        begun = time.monotonic()
        results = await self._evaluate(judge_input)
        weights = weights_in(loaded.phase, self._file.weights).as_dict()
        weighted, _ = weighted_mean(weights, values_of(results))
        return Answer(
            segment=segment.name,
            variant=variant,
            weighted=weighted,
            weights=weights,
            facts_bytes=len(render(judge_input.facts, WHOLE).encode()),
            seconds=round(time.monotonic() - begun, 3),
            results=results,
        )

    async def _evaluate(self, judge_input: JudgeInput) -> list[JudgeResult]:
        judges = self._runtime.pool.judges
        return await asyncio.gather(*(evaluate_patiently(judge, judge_input, pause_s=RETRY_S) for judge in judges))


def _varied(loaded: LoadedSegment, variant: Variant) -> JudgeInput:
    judge_input = loaded.judge_input
    return replace(judge_input, facts=varied(judge_input.facts, variant, str(judge_input.segment)))
