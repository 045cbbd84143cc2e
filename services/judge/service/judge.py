"""One judge on one segment: asks for votes, keeps what is valid, asks again while they are split, merges.

The result is what was said, or *abstained* with the reasons. There is no default score.
"""

import asyncio
import dataclasses
import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field

import structlog

from services.judge import telemetry
from services.judge.config import JudgeSpec
from services.judge.domain.budget import BudgetExhausted, BudgetTracker, Reservation, add
from services.judge.domain.facts.timeline import PromptTooLong
from services.judge.domain.judge_input import JudgeInput
from services.judge.domain.replies import InvalidReply, Vote, parse_pair, parse_vote
from services.judge.domain.vote_merge import has_quorum, merge
from services.judge.ports import (
    ChatModel,
    Choice,
    Completion,
    CompletionRequest,
    RequestRefused,
    RouteUnavailable,
    usage_of,
)
from services.judge.service.prompt_builder import Prompt, build_pair_prompt, build_prompt
from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.ids import Digest
from shared.contracts.scores import JudgeResult, Usage

# Longest hearing. The consumer's limit would throw away what the other judges said; this one comes before.
SEGMENT_TIMEOUT_S = JUDGE_SEGMENTS.timeout_s - 30

log = structlog.get_logger(__name__)


@dataclass
class VoteSession:
    """The votes on one segment so far. `asked` counts votes asked for, `invalid` why replies were none."""

    asked: int = 0
    votes: list[Vote] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class Judge:
    """One judge of the panel. `context` is the server's longest context, once it is known."""

    def __init__(self, spec: JudgeSpec, model: ChatModel, cache_size: int = 0) -> None:
        self.spec = spec
        self.context: int | None = None
        self._model = model
        self._cache: OrderedDict[str, JudgeResult] = OrderedDict()
        self._cache_size = cache_size

    async def evaluate(self, judge_input: JudgeInput, budget: BudgetTracker, *, fresh: bool = False) -> JudgeResult:
        """The outcome for this clip, without memory if `fresh`. Raises RouteUnavailable when the route gave nothing."""
        try:
            question = await build_prompt(self.spec, judge_input, self.context)
        except PromptTooLong as error:
            return self._to_result(None, VoteSession(notes=[str(error)]))
        known = None if fresh else self._cache.get(question.digest)
        if known is not None:
            self._cache.move_to_end(question.digest)
            telemetry.CACHED.labels(self.spec.name).inc()
            return known.model_copy(update={"usage": Usage()})
        hearing = await self._collect_votes(judge_input, question, budget)
        result = self._to_result(question, hearing)
        self._cache_result(question.digest, result)
        return result

    def seconds_since_response(self) -> float:
        """Seconds since its route last answered anybody."""
        return self._model.seconds_since_response()

    async def compare(self, first: JudgeInput, second: JudgeInput, budget: BudgetTracker) -> str | None:
        """Which of two clips is better: `A` (the first), `B` or `equal`; None when there was no valid reply."""
        question = build_pair_prompt(self.spec, first, second, self.context)
        ask = CompletionRequest(question.body, 1, vote_seed(f"{first.segment}|{second.segment}"), first.run)
        try:
            answer = await self._call_within_budget(ask, question, budget, VoteSession())
            choice = answer.choices[0] if answer.choices else Choice(None, None)
            return parse_pair(choice.content, choice.finish_reason)
        except (BudgetExhausted, RequestRefused, RouteUnavailable, InvalidReply) as error:
            log.info("no comparison", judge=self.spec.name, reason=str(error))
            return None

    async def _collect_votes(self, judge_input: JudgeInput, question: Prompt, budget: BudgetTracker) -> VoteSession:
        """Ask up the ladder of votes. After a first answer, what is there is used even if no more can be had."""
        hearing, until = VoteSession(), asyncio.get_running_loop().time() + SEGMENT_TIMEOUT_S
        seed = vote_seed(judge_input.segment)
        while more := self.spec.vote_schedule.votes_to_request(hearing.votes, hearing.asked):
            ask = CompletionRequest(question.body, more, seed + hearing.asked, judge_input.run)
            try:
                async with asyncio.timeout_at(until):
                    answer = await self._call_within_budget(ask, question, budget, hearing)
            except (BudgetExhausted, RequestRefused) as error:
                hearing.notes.append(str(error))
                break
            except (RouteUnavailable, TimeoutError) as error:
                why = (
                    str(error)
                    or f"route {self.spec.route}: no answer within {SEGMENT_TIMEOUT_S:g} s, mostly spent in line"
                )
                if hearing.asked == 0:
                    raise RouteUnavailable(why) from error
                hearing.notes.append(f"no more votes: {why}")
                break
            if hearing.asked:
                telemetry.EXTRA.labels(self.spec.name).inc(more)
            self._count_votes(answer, more, hearing)
        return hearing

    async def _call_within_budget(
        self, ask: CompletionRequest, question: Prompt, budget: BudgetTracker, hearing: VoteSession
    ) -> Completion:
        """Make the call within the budget and book what it cost."""
        most = Usage(calls=1, prompt_tokens=question.tokens, output_tokens=ask.n * self.spec.max_output_tokens)
        most = most.model_copy(update={"money": self.spec.prices.money(most)})
        told = Usage()
        try:
            reserved = Reservation(budget, self.spec.name, most)
            try:
                counted = dataclasses.replace(ask, on_send=reserved.on_send, on_lost_response=reserved.on_lost_response)
                answer = await self._model.complete(counted)
                told = usage_of(answer, most)
                told = told.model_copy(update={"money": self.spec.prices.money(told)})
            finally:
                real = reserved.settle(told)
                hearing.usage = add(hearing.usage, real)
                self._export_usage(real)
        except BudgetExhausted:
            telemetry.BUDGET.labels(self.spec.name).inc()
            raise
        if answer.prompt_tokens is not None:
            telemetry.BOUND.labels(self.spec.name).set(answer.prompt_tokens / question.tokens)
        return answer

    def _count_votes(self, answer: Completion, asked: int, hearing: VoteSession) -> None:
        """Keep the valid votes; note why the others are none. Missing choices are invalid votes."""
        hearing.asked += asked
        valid = telemetry.VOTES.labels(self.spec.name, "yes")
        invalid = telemetry.VOTES.labels(self.spec.name, "no")
        for choice in answer.choices[:asked]:
            try:
                hearing.votes.append(parse_vote(choice.content, choice.finish_reason, self.spec.dimensions))
                valid.inc()
            except InvalidReply as error:
                hearing.invalid.append(str(error))
                invalid.inc()
        missing = asked - len(answer.choices)
        if missing > 0:
            hearing.invalid.extend([f"the server gave {len(answer.choices)} of {asked} choices"] * missing)
            invalid.inc(missing)
        texts = {str(choice.content) for choice in answer.choices}
        if asked > 1 and len(answer.choices) > 1 and len(texts) == 1:
            telemetry.COPIES.labels(self.spec.name).inc()

    def _to_result(self, question: Prompt | None, hearing: VoteSession) -> JudgeResult:
        judged = has_quorum(len(hearing.votes), hearing.asked)
        reasons = [vote.reason for vote in hearing.votes] if judged else []
        status = "judged" if judged else "abstained"
        telemetry.RESULTS.labels(self.spec.name, status).inc()
        if not judged:
            log.warning("judge abstained", judge=self.spec.name, reasons=(hearing.invalid + hearing.notes)[:3])
        return JudgeResult(
            judge=self.spec.name,
            route=self.spec.route or "in-process",
            model=self.spec.model,
            prompt=Digest(question.digest if question else "0" * 64),
            status="judged" if judged else "abstained",
            dimensions=merge(hearing.votes) if judged else {},
            reasons=[reason[:500] for reason in (*reasons, *hearing.invalid, *hearing.notes)][:22],
            usage=hearing.usage,
        )

    def _export_usage(self, usage: Usage) -> None:
        for kind in ("prompt", "cached", "output"):
            telemetry.TOKENS.labels(self.spec.name, kind).inc(getattr(usage, f"{kind}_tokens"))
        telemetry.MONEY.labels(self.spec.name).inc(usage.money)

    def _cache_result(self, digest: str, result: JudgeResult) -> None:
        """Only whole results: what abstained may be judged the next time."""
        if result.status != "judged" or self._cache_size == 0:
            return
        self._cache[digest] = result
        if len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)


def vote_seed(segment: str) -> int:
    """The seed of a segment's votes: the same at every redelivery, different between segments."""
    return int.from_bytes(hashlib.sha256(segment.encode()).digest()[:4], "big") >> 1
