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
from services.judge.briefing import Brief, Clip, brief, pair_brief
from services.judge.config import JudgeSpec
from services.judge.domain.budget import BudgetExhausted, Ledger, Reservation, add
from services.judge.domain.merge import enough, merge
from services.judge.domain.replies import InvalidReply, Vote, read_pair, read_vote
from services.judge.domain.timeline import TooLong
from services.judge.ports import Answer, Choice, Model, Question, RequestRefused, RouteUnavailable, usage_of
from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.ids import Digest
from shared.contracts.scores import JudgeResult, Usage

# Longest hearing. The consumer's limit would throw away what the other judges said; this one comes before.
SITTING_S = JUDGE_SEGMENTS.timeout_s - 30

log = structlog.get_logger(__name__)


@dataclass
class Hearing:
    """The votes on one segment so far. `asked` counts votes asked for, `invalid` why replies were none."""

    asked: int = 0
    votes: list[Vote] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class Juror:
    """One judge of the panel. `context` is the server's longest context, once it is known."""

    def __init__(self, spec: JudgeSpec, model: Model, cache_size: int = 0) -> None:
        self.spec = spec
        self.context: int | None = None
        self._model = model
        self._cache: OrderedDict[str, JudgeResult] = OrderedDict()
        self._cache_size = cache_size

    async def judge(self, clip: Clip, ledger: Ledger, *, fresh: bool = False) -> JudgeResult:
        """The outcome for this clip, without memory if `fresh`. Raises RouteUnavailable when the route gave nothing."""
        try:
            question = await brief(self.spec, clip, self.context)
        except TooLong as error:
            return self._done(None, Hearing(notes=[str(error)]))
        known = None if fresh else self._cache.get(question.digest)
        if known is not None:
            self._cache.move_to_end(question.digest)
            telemetry.CACHED.labels(self.spec.name).inc()
            return known.model_copy(update={"usage": Usage()})
        hearing = await self._hear(clip, question, ledger)
        result = self._done(question, hearing)
        self._remember(question.digest, result)
        return result

    def silent_s(self) -> float:
        """Seconds since its route last answered anybody."""
        return self._model.silent_s()

    async def compare(self, first: Clip, second: Clip, ledger: Ledger) -> str | None:
        """Which of two clips is better: `A` (the first), `B` or `equal`; None when there was no valid reply."""
        question = pair_brief(self.spec, first, second, self.context)
        ask = Question(question.body, 1, seed_of(f"{first.segment}|{second.segment}"), first.run)
        try:
            answer = await self._paid(ask, question, ledger, Hearing())
            choice = answer.choices[0] if answer.choices else Choice(None, None)
            return read_pair(choice.content, choice.finish_reason)
        except (BudgetExhausted, RequestRefused, RouteUnavailable, InvalidReply) as error:
            log.info("no comparison", judge=self.spec.name, reason=str(error))
            return None

    async def _hear(self, clip: Clip, question: Brief, ledger: Ledger) -> Hearing:
        """Ask up the ladder of votes. After a first answer, what is there is used even if no more can be had."""
        hearing, until = Hearing(), asyncio.get_running_loop().time() + SITTING_S
        seed = seed_of(clip.segment)
        while more := self.spec.ladder.next_ask(hearing.votes, hearing.asked):
            ask = Question(question.body, more, seed + hearing.asked, clip.run)
            try:
                async with asyncio.timeout_at(until):
                    answer = await self._paid(ask, question, ledger, hearing)
            except (BudgetExhausted, RequestRefused) as error:
                hearing.notes.append(str(error))
                break
            except (RouteUnavailable, TimeoutError) as error:
                why = str(error) or f"route {self.spec.route}: no answer within {SITTING_S:g} s, mostly spent in line"
                if hearing.asked == 0:
                    raise RouteUnavailable(why) from error
                hearing.notes.append(f"no more votes: {why}")
                break
            if hearing.asked:
                telemetry.EXTRA.labels(self.spec.name).inc(more)
            self._count(answer, more, hearing)
        return hearing

    async def _paid(self, ask: Question, question: Brief, ledger: Ledger, hearing: Hearing) -> Answer:
        """Make the call within the budget and book what it cost."""
        most = Usage(calls=1, prompt_tokens=question.tokens, output_tokens=ask.n * self.spec.max_output_tokens)
        most = most.model_copy(update={"money": self.spec.prices.money(most)})
        told = Usage()
        try:
            reserved = Reservation(ledger, self.spec.name, most)
            try:
                counted = dataclasses.replace(ask, sending=reserved.sending, unanswered=reserved.unanswered)
                answer = await self._model.ask(counted)
                told = usage_of(answer, most)
                told = told.model_copy(update={"money": self.spec.prices.money(told)})
            finally:
                real = reserved.settle(told)
                hearing.usage = add(hearing.usage, real)
                self._book(real)
        except BudgetExhausted:
            telemetry.BUDGET.labels(self.spec.name).inc()
            raise
        if answer.prompt_tokens is not None:
            telemetry.BOUND.labels(self.spec.name).set(answer.prompt_tokens / question.tokens)
        return answer

    def _count(self, answer: Answer, asked: int, hearing: Hearing) -> None:
        """Keep the valid votes; note why the others are none. Missing choices are invalid votes."""
        hearing.asked += asked
        valid = telemetry.VOTES.labels(self.spec.name, "yes")
        invalid = telemetry.VOTES.labels(self.spec.name, "no")
        for choice in answer.choices[:asked]:
            try:
                hearing.votes.append(read_vote(choice.content, choice.finish_reason, self.spec.dimensions))
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

    def _done(self, question: Brief | None, hearing: Hearing) -> JudgeResult:
        judged = enough(len(hearing.votes), hearing.asked)
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

    def _book(self, usage: Usage) -> None:
        for kind in ("prompt", "cached", "output"):
            telemetry.TOKENS.labels(self.spec.name, kind).inc(getattr(usage, f"{kind}_tokens"))
        telemetry.MONEY.labels(self.spec.name).inc(usage.money)

    def _remember(self, digest: str, result: JudgeResult) -> None:
        """Only whole results: what abstained may be judged the next time."""
        if result.status != "judged" or self._cache_size == 0:
            return
        self._cache[digest] = result
        if len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)


def seed_of(segment: str) -> int:
    """The seed of a segment's votes: the same at every redelivery, different between segments."""
    return int.from_bytes(hashlib.sha256(segment.encode()).digest()[:4], "big") >> 1
