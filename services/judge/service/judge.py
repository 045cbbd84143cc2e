"""One judge on one segment: requests votes, requests more while they are split, and merges the valid ones.

The result holds scores or is *abstained* with reasons. There is no default score.
"""

import asyncio
import hashlib
from dataclasses import dataclass, field

import structlog

from services.judge import telemetry
from services.judge.config import JudgeSpec
from services.judge.domain.expected_votes import VoteDistribution, expected_score, read_distributions
from services.judge.domain.facts.timeline import PromptTooLong
from services.judge.domain.judge_input import JudgeInput
from services.judge.domain.pair_votes import Weighing, chosen, read_pair_vote
from services.judge.domain.replies import Vote, parse_numbers, parse_pair, parse_vote
from services.judge.domain.vote_merge import has_quorum, merge
from services.judge.service.prompt_builder import Prompt, build_pair_prompt, build_prompt
from services.judge.service.reply_archive import ReplyArchive
from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.ids import Digest
from shared.contracts.scores import DimensionScore, JudgeResult, Usage
from shared.errors import Permanent, Transient
from shared.llm.budget import BudgetExhausted, BudgetTracker, add
from shared.llm.json_reply import InvalidReply
from shared.llm.port import (
    ChatModel,
    Choice,
    Completion,
    CompletionRequest,
    RequestRefused,
    RouteTimeout,
    RouteUnavailable,
    TooManyChoices,
)
from shared.llm.spending import Payment, complete_within_budget
from shared.process.bounded_cache import BoundedCache

# Ends before the consumer's own timeout, which would discard the results of the other judges.
MAX_SEGMENT_S = JUDGE_SEGMENTS.timeout_s - 30
SEGMENT_TIMEOUT_S = 270.0  # on a fast route; on a slow one, the time for some of its calls
SEGMENT_CALLS = 4  # in line and in work; more follow only while votes are split
MAX_UNFINISHED = 1_000  # segments of a judge whose route failed between the first votes

log = structlog.get_logger(__name__)


@dataclass
class VoteSession:
    """The votes of one judge on one segment so far.

    `requested` counts votes, `replies` are their texts, `invalid` says why one was rejected, `notes` why no more votes
    were requested.
    """

    requested: int = 0
    replies: list[str] = field(default_factory=list)
    votes: list[Vote] = field(default_factory=list)
    distributions: dict[str, VoteDistribution] = field(default_factory=dict)
    invalid: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """A result with the raw replies that it came from; without them if the service keeps none.

    `kept` of the result says nothing: it depends on the run that asks.
    """

    result: JudgeResult
    replies: list[str]


class Judge:
    """One judge of the pool. `context` is the server's context length in tokens, None until it is known."""

    def __init__(
        self, spec: JudgeSpec, model: ChatModel, cache_size: int = 0, archive: ReplyArchive | None = None
    ) -> None:
        self.spec = spec
        self._archive = archive
        self.context: int | None = None
        self._model = model
        self._prompt_builder = asyncio.Semaphore(1)  # encoding frames in more threads would starve the event loop
        self._cache: BoundedCache[str, KnownAnswer] | None = BoundedCache(cache_size) if cache_size else None
        # Votes that were paid before the route failed. The repeat has the same seeds: to ask again would buy nothing.
        self._unfinished: BoundedCache[str, VoteSession] = BoundedCache(MAX_UNFINISHED)

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
            kept = await self._keep(judge_input, prompt, known.replies)  # replies are kept for each run
            return known.result.model_copy(update={"usage": Usage(), "kept": kept})
        session = await self._collect_votes(judge_input, prompt, budget)
        result = self._to_result(prompt, session)
        if self._cache is not None and result.status == "judged":  # an abstention may succeed the next time
            # Before the next await: an evaluation that is cancelled there is repeated, and must not pay again.
            replies = [] if self._archive is None else session.replies
            self._cache.put(prompt.digest, KnownAnswer(result, replies))
        return result.model_copy(update={"kept": await self._keep(judge_input, prompt, session.replies)})

    def seconds_since_response(self) -> float:
        """Seconds since the judge's route last answered any call."""
        return self._model.seconds_since_response()

    async def compare(self, first: JudgeInput, second: JudgeInput, budget: BudgetTracker) -> str | None:
        """Return which clip is better, `A` (the first), `B` or `equal`; None without a valid reply."""
        try:
            vote = (await self.weigh(first, second, budget)).vote
        except RouteUnavailable as error:
            log.info("comparison skipped", judge=self.spec.name, error=str(error))
            return None
        return None if vote is None else vote.choice

    async def weigh(self, first: JudgeInput, second: JudgeInput, budget: BudgetTracker) -> Weighing:
        """Return how probably which clip is better, shown in this order. Raises RouteUnavailable without any reply."""
        session = VoteSession()
        try:
            prompt = build_pair_prompt(self.spec, first, second, self.context)
        except PromptTooLong as error:
            return Weighing(None, None, str(error), session.usage)
        digest = Digest(prompt.digest)
        request = CompletionRequest(prompt.body, 1, vote_seed(f"{first.segment}|{second.segment}"), first.run)
        try:
            completion = await self._complete_within_budget(request, prompt, budget, session)
            choice = completion.choices[0] if completion.choices else Choice(None, None)
            kept = await self._keep(first, prompt, [choice.content if isinstance(choice.content, str) else ""])
            asks_reason = self.spec.asking == "votes"
            answer = parse_pair(choice.content, choice.finish_reason, reason=asks_reason)
            vote = chosen(answer.better) if asks_reason else read_pair_vote(choice.tokens)
            return Weighing(digest, vote, answer.reason, session.usage, kept)
        except (BudgetExhausted, RequestRefused, InvalidReply) as error:
            log.info("comparison skipped", judge=self.spec.name, error=str(error))
            return Weighing(digest, None, str(error), session.usage)

    async def _keep(self, judge_input: JudgeInput, prompt: Prompt, replies: list[str]) -> bool:
        """Keep prompt and raw replies if the service does. False if they are not stored: the votes count without."""
        if self._archive is None or not replies:
            return False
        try:
            await self._archive.keep(judge_input.run, self.spec.name, prompt, replies)
        except (Transient, Permanent) as error:
            log.warning("replies not kept", judge=self.spec.name, segment=judge_input.segment, error=str(error))
            return False
        return True

    async def _collect_votes(self, judge_input: JudgeInput, prompt: Prompt, budget: BudgetTracker) -> VoteSession:
        """Follow the vote schedule. After the first votes are complete, a failure ends it with those so far.

        A failure before that is raised; the next call continues with the votes that were answered.
        """
        session = self._unfinished.pop(prompt.digest) or VoteSession()
        deadline = asyncio.get_running_loop().time() + self._segment_limit_s()
        while more := self.spec.vote_schedule.votes_to_request(session.votes, session.requested):
            total = session.requested + more
            try:
                async with asyncio.timeout_at(deadline):
                    await self._request_votes(total, judge_input, prompt, budget, session)
            except (BudgetExhausted, RequestRefused) as error:
                session.notes.append(str(error))
                session.requested = max(session.requested, self._first_votes)  # a part of them is no quorum
                break
            except (RouteUnavailable, TimeoutError) as error:
                if session.requested >= self._first_votes:
                    session.notes.append(f"no more votes: {str(error) or self._timeout_message()}")
                    break
                self._unfinished.put(prompt.digest, session)
                if isinstance(error, RouteUnavailable):
                    raise
                raise RouteTimeout(self._timeout_message()) from error
        return session

    async def _request_votes(
        self, total: int, judge_input: JudgeInput, prompt: Prompt, budget: BudgetTracker, session: VoteSession
    ) -> None:
        """Request votes up to this total: in one call, or in as many as the server demands.

        Calls of one prompt follow each other: a later one finds the prompt in the server's prefix cache.
        """
        seed = vote_seed(prompt.digest)
        while (left := total - session.requested) > 0:
            n = self._model.choices_per_request(left)
            request = CompletionRequest(prompt.body, n, seed + session.requested, judge_input.run)
            try:
                completion = await self._complete_within_budget(request, prompt, budget, session)
            except TooManyChoices as error:
                log.info("votes split", judge=self.spec.name, asked=n, error=str(error))
                continue
            answered = max(len(completion.choices), self._model.choices_per_request(n))  # it may ignore n
            if session.requested >= self._first_votes:
                telemetry.EXTRA.labels(self.spec.name).inc(min(n, answered))
            self._count_votes(completion, min(n, answered), session)

    @property
    def _first_votes(self) -> int:
        return self.spec.vote_schedule.sizes[0]

    def _segment_limit_s(self) -> float:
        """The time for all calls about one segment, including their time in the queue."""
        return min(MAX_SEGMENT_S, max(SEGMENT_TIMEOUT_S, SEGMENT_CALLS * self._model.call_limit_s))

    def _timeout_message(self) -> str:
        return f"route {self.spec.route}: no answer within {self._segment_limit_s():g} s, mostly queueing"

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
            session.replies.append(choice.content if isinstance(choice.content, str) else "")
            try:
                session.votes.append(self._parse(choice, session))
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

    def _parse(self, choice: Choice, session: VoteSession) -> Vote:
        """Return the choice's vote; with probabilities, the session also gets its distributions."""
        names = self.spec.dimensions
        if self.spec.asking == "votes":
            return parse_vote(choice.content, choice.finish_reason, names)
        vote = parse_numbers(choice.content, choice.finish_reason, names)
        session.distributions = read_distributions(choice.tokens, names)
        return vote

    def _merge(self, session: VoteSession) -> dict[str, DimensionScore]:
        if self.spec.asking == "votes":
            return merge(session.votes)
        return {name: expected_score(found, self.spec.spread_scale) for name, found in session.distributions.items()}

    def _to_result(self, prompt: Prompt | None, session: VoteSession) -> JudgeResult:
        judged = has_quorum(len(session.votes), session.requested)
        reasons = [vote.reason for vote in session.votes if vote.reason] if judged else []
        telemetry.RESULTS.labels(self.spec.name, "judged" if judged else "abstained").inc()
        if not judged:
            log.warning("judge abstained", judge=self.spec.name, reasons=(session.invalid + session.notes)[:3])
        return JudgeResult(
            judge=self.spec.name,
            route=self.spec.route or "in-process",
            model=self.spec.model,
            prompt=Digest(prompt.digest if prompt else "0" * 64),
            status="judged" if judged else "abstained",
            dimensions=self._merge(session) if judged else {},
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
