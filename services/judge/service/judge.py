"""One judge on one segment: requests votes, requests more while they are split, and merges the valid ones.

The result holds scores or is *abstained* with reasons. There is no default score.
"""

import asyncio
import hashlib
from dataclasses import dataclass, field

import structlog

from services.judge import telemetry
from services.judge.config import JudgeSpec
from services.judge.domain.facts.timeline import PromptTooLong
from services.judge.domain.judge_input import JudgeInput
from services.judge.domain.replies import InvalidReply, Vote, parse_pair, parse_vote
from services.judge.domain.vote_merge import has_quorum, merge
from services.judge.service.prompt_builder import Prompt, build_pair_prompt, build_prompt
from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.ids import Digest
from shared.contracts.scores import JudgeResult, Usage
from shared.llm.budget import BudgetExhausted, BudgetTracker, add
from shared.llm.port import (
    ChatModel,
    Choice,
    Completion,
    CompletionRequest,
    RequestRefused,
    RouteUnavailable,
)
from shared.llm.spending import Payment, complete_within_budget
from shared.process.bounded_cache import BoundedCache

# Ends before the consumer's own timeout, which would discard the results of the other judges.
SEGMENT_TIMEOUT_S = JUDGE_SEGMENTS.timeout_s - 30

log = structlog.get_logger(__name__)


@dataclass
class VoteSession:
    """The votes of one judge on one segment so far.

    `requested` counts votes; `invalid` says why a reply was rejected, `notes` why no more votes were requested.
    """

    requested: int = 0
    votes: list[Vote] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class Judge:
    """One judge of the pool. `context` is the server's context length in tokens, None until it is known."""

    def __init__(self, spec: JudgeSpec, model: ChatModel, cache_size: int = 0) -> None:
        self.spec = spec
        self.context: int | None = None
        self._model = model
        self._prompt_builder = asyncio.Semaphore(1)  # encoding frames in more threads would starve the event loop
        self._cache: BoundedCache[str, JudgeResult] | None = BoundedCache(cache_size) if cache_size else None

    async def evaluate(self, judge_input: JudgeInput, budget: BudgetTracker, *, fresh: bool = False) -> JudgeResult:
        """Return the judge's result; `fresh` bypasses the cache. Raises RouteUnavailable without any response."""
        try:
            async with self._prompt_builder:
                prompt = await build_prompt(self.spec, judge_input, self.context)
        except PromptTooLong as error:
            return self._to_result(None, VoteSession(notes=[str(error)]))
        known = None if fresh or self._cache is None else self._cache.get(prompt.digest)
        if known is not None:
            telemetry.CACHED.labels(self.spec.name).inc()
            return known.model_copy(update={"usage": Usage()})
        result = self._to_result(prompt, await self._collect_votes(judge_input, prompt, budget))
        if self._cache is not None and result.status == "judged":  # an abstention may succeed the next time
            self._cache.put(prompt.digest, result)
        return result

    def seconds_since_response(self) -> float:
        """Seconds since the judge's route last answered any call."""
        return self._model.seconds_since_response()

    async def compare(self, first: JudgeInput, second: JudgeInput, budget: BudgetTracker) -> str | None:
        """Return which clip is better, `A` (the first), `B` or `equal`; None without a valid reply."""
        prompt = build_pair_prompt(self.spec, first, second, self.context)
        request = CompletionRequest(prompt.body, 1, vote_seed(f"{first.segment}|{second.segment}"), first.run)
        try:
            completion = await self._complete_within_budget(request, prompt, budget, VoteSession())
            choice = completion.choices[0] if completion.choices else Choice(None, None)
            return parse_pair(choice.content, choice.finish_reason)
        except (BudgetExhausted, RequestRefused, RouteUnavailable, InvalidReply) as error:
            log.info("comparison skipped", judge=self.spec.name, error=str(error))
            return None

    async def _collect_votes(self, judge_input: JudgeInput, prompt: Prompt, budget: BudgetTracker) -> VoteSession:
        """Follow the vote schedule. After a first response, a failure ends the session with the votes so far."""
        session, deadline = VoteSession(), asyncio.get_running_loop().time() + SEGMENT_TIMEOUT_S
        seed = vote_seed(prompt.digest)
        while more := self.spec.vote_schedule.votes_to_request(session.votes, session.requested):
            request = CompletionRequest(prompt.body, more, seed + session.requested, judge_input.run)
            try:
                async with asyncio.timeout_at(deadline):
                    completion = await self._complete_within_budget(request, prompt, budget, session)
            except (BudgetExhausted, RequestRefused) as error:
                session.notes.append(str(error))
                break
            except (RouteUnavailable, TimeoutError) as error:
                why = str(error) or self._timeout_message()
                if session.requested == 0:
                    raise RouteUnavailable(why) from error
                session.notes.append(f"no more votes: {why}")
                break
            if session.requested:
                telemetry.EXTRA.labels(self.spec.name).inc(more)
            self._count_votes(completion, more, session)
        return session

    def _timeout_message(self) -> str:
        return f"route {self.spec.route}: no answer within {SEGMENT_TIMEOUT_S:g} s, mostly queueing"

    async def _complete_within_budget(
        self, request: CompletionRequest, prompt: Prompt, budget: BudgetTracker, session: VoteSession
    ) -> Completion:
        """Reserve the call's upper bound, make the call, and settle what it really cost."""
        upper = Usage(calls=1, prompt_tokens=prompt.tokens, output_tokens=request.n * self.spec.max_output_tokens)

        def add_usage(settled: Usage) -> None:
            session.usage = add(session.usage, settled)
            self._export_usage(settled)

        payment = Payment(budget, self.spec.name, self.spec.prices, add_usage)
        try:
            completion = await complete_within_budget(self._model, request, upper, payment)
        except BudgetExhausted:
            telemetry.BUDGET.labels(self.spec.name).inc()
            raise
        if completion.prompt_tokens is not None:
            telemetry.BOUND.labels(self.spec.name).set(completion.prompt_tokens / prompt.tokens)
        return completion

    def _count_votes(self, completion: Completion, requested: int, session: VoteSession) -> None:
        """Keep valid votes and the reasons of invalid ones. A missing choice is an invalid vote."""
        session.requested += requested
        valid = telemetry.VOTES.labels(self.spec.name, "yes")
        invalid = telemetry.VOTES.labels(self.spec.name, "no")
        for choice in completion.choices[:requested]:
            try:
                session.votes.append(parse_vote(choice.content, choice.finish_reason, self.spec.dimensions))
                valid.inc()
            except InvalidReply as error:
                session.invalid.append(str(error))
                invalid.inc()
        missing = requested - len(completion.choices)
        if missing > 0:
            reason = f"the server returned {len(completion.choices)} of {requested} choices"
            session.invalid.extend([reason] * missing)
            invalid.inc(missing)
        texts = {str(choice.content) for choice in completion.choices}
        if requested > 1 and len(completion.choices) > 1 and len(texts) == 1:
            telemetry.COPIES.labels(self.spec.name).inc()

    def _to_result(self, prompt: Prompt | None, session: VoteSession) -> JudgeResult:
        judged = has_quorum(len(session.votes), session.requested)
        reasons = [vote.reason for vote in session.votes] if judged else []
        telemetry.RESULTS.labels(self.spec.name, "judged" if judged else "abstained").inc()
        if not judged:
            log.warning("judge abstained", judge=self.spec.name, reasons=(session.invalid + session.notes)[:3])
        return JudgeResult(
            judge=self.spec.name,
            route=self.spec.route or "in-process",
            model=self.spec.model,
            prompt=Digest(prompt.digest if prompt else "0" * 64),
            status="judged" if judged else "abstained",
            dimensions=merge(session.votes) if judged else {},
            reasons=[reason[:500] for reason in (*reasons, *session.invalid, *session.notes)][:22],
            usage=session.usage,
        )

    def _export_usage(self, usage: Usage) -> None:
        for kind in ("prompt", "cached", "output"):
            telemetry.TOKENS.labels(self.spec.name, kind).inc(getattr(usage, f"{kind}_tokens"))
        telemetry.MONEY.labels(self.spec.name).inc(usage.money)


def vote_seed(name: str) -> int:
    """Return the seed of votes on what `name` identifies: stable over redeliveries and processes.

    Equal prompts have equal seeds. So the order of arrival decides nothing when the cache answers one of them.
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1
