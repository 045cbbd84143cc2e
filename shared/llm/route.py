"""One OpenAI-compatible address: two quick attempts, circuit breaker, concurrency and time limits that adapt.

Routes share nothing, so that a slow route cannot slow another one.
"""

import asyncio
import dataclasses
import json
import random
import ssl
import time
from collections.abc import Mapping
from datetime import UTC, datetime

import httpx
import structlog

from shared.contracts.driver import BREAKER_NUMBERS
from shared.llm.budget import BudgetExhausted
from shared.llm.call_outcome import CallOutcome, classify_response, pause_before_retry
from shared.llm.client_pool import ClientPool
from shared.llm.completions import (
    InvalidCompletion,
    error_message,
    parse_completion,
    parse_model_list,
)
from shared.llm.limits.breaker import Breaker
from shared.llm.limits.call_time import CallTime
from shared.llm.limits.choice_limit import ChoiceLimit
from shared.llm.limits.concurrency import ConcurrencyController
from shared.llm.port import (
    Completion,
    CompletionRequest,
    RequestRefused,
    RouteTimeout,
    RouteUnavailable,
    TooManyChoices,
)
from shared.llm.request_headers import request_headers
from shared.llm.request_span import end_with_answer, request_span
from shared.llm.route_metrics import RouteMetrics
from shared.llm.route_spec import RouteSpec
from shared.llm.semaphore import AcquireTimeout, AdaptiveSemaphore

LIST_MODELS_TIMEOUT_S = 10.0  # whole exchange; longer, and the service seems to hang when it starts
# No server received the whole request.
NOT_RECEIVED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.WriteError, httpx.WriteTimeout, ssl.SSLError)
REQUEST_ERRORS = (400, 413, 422)  # the request itself is wrong; 401, 403 and 404 are configuration errors
AUTH_ERRORS = (401, 403)
log = structlog.get_logger(__name__)


class RouteClient:
    """A model server behind one address."""

    def __init__(self, name: str, spec: RouteSpec, metrics: RouteMetrics, *, use_direct: bool = False) -> None:
        self.name, self._spec, self._metrics = name, spec, metrics
        self.breaker = Breaker(spec.breaker_failures, spec.breaker_open_s)
        self.concurrency = ConcurrencyController(maximum=spec.max_concurrent, initial=min(8, spec.max_concurrent))
        self.choices = ChoiceLimit()
        self.call_time = CallTime(spec.total_timeout_s, spec.longest_timeout_s)
        self._semaphore = AdaptiveSemaphore(lambda: self.concurrency.limit)
        self._not_before = 0.0  # monotonic: no call until then
        self._busy_until = 0.0  # monotonic: a busy server's Retry-After ends then
        self._last_response = time.monotonic()
        self._rng = random.Random()  # noqa: S311  # jitter, not a secret
        self.clients = ClientPool(spec, use_direct=use_direct)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the completion. Raises RouteUnavailable or RequestRefused."""
        queued_at = time.monotonic()
        if self.breaker.state(queued_at) == "open":  # fail without queueing
            raise self._breaker_error()
        await self._respect_retry_after(self._spec.wait_s)
        try:
            async with self._semaphore.slot(self._longest_wait_s()):
                self._metrics.wait_seconds.labels(self.name).observe(time.monotonic() - queued_at)
                return await self._complete_in_time(request)
        except AcquireTimeout as error:
            raise RouteUnavailable(f"route {self.name}: {error}") from error

    async def list_models(self) -> Mapping[str, int | None]:
        """Return the served models with their context length in tokens, None where the server does not report it.

        Empty if the server has no such list. Raises RouteUnavailable if it is unreachable, overloaded or refuses us.
        """
        try:
            async with asyncio.timeout(LIST_MODELS_TIMEOUT_S):
                headers = request_headers(self.name, self._spec, "")
                status, answer_headers, raw = await self.clients.exchange("GET", "/models", headers)
        except TimeoutError as error:
            raise RouteUnavailable(
                f"route {self.name}: no list of models within {LIST_MODELS_TIMEOUT_S:g} s"
            ) from error
        except (httpx.HTTPError, InvalidCompletion, ssl.SSLError) as error:
            raise RouteUnavailable(f"route {self.name}: {type(error).__name__} {error}"[:200]) from error
        outcome = classify_response(status, answer_headers, datetime.now(UTC))
        if status in AUTH_ERRORS:
            raise RouteUnavailable(f"route {self.name}: {outcome.detail} for the list of models (check its token)")
        if outcome.kind in ("overload", "outage"):
            raise RouteUnavailable(f"route {self.name}: {outcome.detail} for the list of models")
        return parse_model_list(raw) if outcome.kind == "answer" else {}

    def seconds_since_response(self) -> float:
        """Seconds since the server should have answered: neither a call's usual time nor a wait it asks for counts."""
        expected = max(self._last_response + self.call_time.slowest_s, self._busy_until)
        return max(0.0, time.monotonic() - expected)

    def choices_per_request(self, wanted: int) -> int:
        """Return how many of these choices one request may ask for, as far as it is known."""
        return self.choices.cap(wanted)

    @property
    def call_limit_s(self) -> float:
        """The longest time that one call may take now."""
        return self.call_time.limit_s

    def calls_within(self, line_s: float) -> int:
        """Return how many calls may be in flight or queued, so that the last one waits about this long."""
        typical_s = self.call_time.typical_s
        rounds = 2.0 if typical_s is None else 1.0 + line_s / max(typical_s, 0.001)
        return int(self.concurrency.limit * rounds)

    def seconds_until_probe(self) -> float:
        """Seconds until the breaker admits a call; 0 if a call may start now."""
        return self.breaker.seconds_until_probe(time.monotonic())

    @property
    def in_flight(self) -> int:
        """Number of calls in flight."""
        return self._semaphore.in_flight

    @property
    def queued(self) -> int:
        """Number of calls that wait for a slot."""
        return self._semaphore.queued

    async def close(self) -> None:
        """Close all connections."""
        await self.clients.close()

    async def _complete_in_time(self, request: CompletionRequest) -> Completion:
        """Run all attempts within the call's time limit."""
        begun, limit_s = time.monotonic(), self.call_limit_s
        self._export_metrics()
        try:
            async with asyncio.timeout(limit_s):
                return await self._run_attempts(request, begun, begun + limit_s)
        except TimeoutError as error:
            timeout = CallOutcome("outage", f"no answer within {limit_s:g} s")
            self._on_failure(timeout, overload=True)
            self._adapt_time_limit(limit_s)
            raise RouteTimeout(f"route {self.name}: {timeout.detail}") from error
        except (asyncio.CancelledError, BudgetExhausted):
            self.breaker.release_probe()  # we ended the call: it says nothing about the route
            raise
        finally:
            self._metrics.call_seconds.labels(self.name).observe(time.monotonic() - begun)
            self._export_metrics()

    def _adapt_time_limit(self, limit_s: float) -> None:
        """After a call that took longer: the route may be slow, and then its silence means nothing for a while."""
        if self.call_time.record_timeout(limit_s):
            self._busy_until = max(self._busy_until, time.monotonic() + self.call_limit_s)
            log.warning("time limit raised", route=self.name, limit_s=self.call_limit_s)

    async def _run_attempts(self, request: CompletionRequest, begun: float, deadline: float) -> Completion:
        body = json.dumps({**request.body, "n": request.n, "seed": request.seed}).encode()
        headers = request_headers(self.name, self._spec, request.fairness_id)
        for left in reversed(range(self._spec.attempts)):
            await self._respect_retry_after(deadline - time.monotonic())
            if not self.breaker.admit(time.monotonic()):
                raise self._breaker_error()
            request.on_send()
            with request_span(self.name, request) as (current, context):
                outcome = await self._attempt(request, body, {**headers, **context}, begun)
                end_with_answer(current, outcome)
            if isinstance(outcome, Completion):
                return outcome
            remaining = deadline - time.monotonic()
            pause = pause_before_retry(outcome, remaining, self._rng.random()) if left else None
            if pause is None:
                raise RouteUnavailable(f"route {self.name}: {outcome.detail}")
            await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _attempt(
        self, request: CompletionRequest, body: bytes, headers: Mapping[str, str], begun: float
    ) -> Completion | CallOutcome:
        """Send one request. Every outcome reaches the breaker; a lost response also reaches the budget."""
        try:
            status, answer_headers, raw = await self.clients.exchange("POST", "/chat/completions", headers, body)
        except NOT_RECEIVED as error:
            return self._on_transport_error(error)
        except (httpx.HTTPError, InvalidCompletion) as error:
            request.on_lost_response()
            return self._on_transport_error(error)
        except asyncio.CancelledError:
            request.on_lost_response()
            raise
        outcome = classify_response(status, answer_headers, datetime.now(UTC))
        if outcome.kind == "answer":
            return self._on_response(request, raw, begun)
        if outcome.kind == "refused":
            self.breaker.record_success()
            self._on_refusal(request, status, raw)
        detail = f"{outcome.detail}: {error_message(raw)}".removesuffix(": ")
        outcome = dataclasses.replace(outcome, detail=detail)
        return self._on_failure(outcome, overload=outcome.kind == "overload", alive=status == 429)

    def _on_transport_error(self, error: Exception) -> CallOutcome:
        return self._on_failure(CallOutcome("outage", f"{type(error).__name__} {error}".strip()[:160]))

    def _on_response(self, request: CompletionRequest, raw: bytes, begun: float) -> Completion | CallOutcome:
        try:
            completion = parse_completion(raw, time.monotonic() - begun)
        except InvalidCompletion as error:
            request.on_lost_response()
            detail = f"HTTP 200, but {error}: {error_message(raw)}".removesuffix(": ")
            return self._on_failure(CallOutcome("outage", detail))
        self._mark_alive()
        self.call_time.record_answer(completion.seconds)
        if self.choices.learn_from_answer(request.n, len(completion.choices)):
            log.warning("choices limited", route=self.name, choices_per_request=self.choices.most)
        self.concurrency.record_success(self._semaphore.in_flight)
        self._metrics.calls.labels(self.name, "answer").inc()
        return completion

    def _on_refusal(self, request: CompletionRequest, status: int, raw: bytes) -> None:
        self._metrics.calls.labels(self.name, "refused").inc()
        message = f"route {self.name}: HTTP {status}: {error_message(raw)}"
        if status in REQUEST_ERRORS:
            self._mark_alive()
            if self.choices.learn_from_refusal(request.n, error_message(raw)):
                raise TooManyChoices(message)
            raise RequestRefused(message)
        raise RouteUnavailable(f"{message} (check model name, token and address of this route)")

    def _on_failure(self, outcome: CallOutcome, *, overload: bool = False, alive: bool = False) -> CallOutcome:
        now = time.monotonic()
        if alive:
            self._mark_alive()
            self._busy_until = max(self._busy_until, now + (outcome.retry_after_s or 0.0))
        else:
            self.breaker.record_failure(now)
        if overload:
            self.concurrency.record_overload(now)
        if outcome.retry_after_s is not None:
            self._not_before = max(self._not_before, now + outcome.retry_after_s)
        self._metrics.calls.labels(self.name, outcome.kind).inc()
        return outcome

    def _mark_alive(self) -> None:
        self.breaker.record_success()
        self._last_response = time.monotonic()
        self._semaphore.record_progress()

    def _longest_wait_s(self) -> float:
        """The longest wait for a free slot: on a slow route, at least as long as the calls that hold the slots."""
        slow = self.call_limit_s > self._spec.total_timeout_s
        return max(self._spec.wait_s, self.call_limit_s) if slow else self._spec.wait_s

    async def _respect_retry_after(self, at_most_s: float) -> None:
        """Wait as long as the server's Retry-After asks for. Raises RouteUnavailable if that exceeds `at_most_s`."""
        while (pause := self._not_before - time.monotonic()) > 0:
            if pause > at_most_s:
                raise RouteUnavailable(f"route {self.name}: the server asks for a pause of another {pause:.1f} s")
            await asyncio.sleep(pause + self._rng.random() * 0.1)

    def _breaker_error(self) -> RouteUnavailable:
        wait = self.seconds_until_probe()
        return RouteUnavailable(
            f"route {self.name}: breaker open after {self.breaker.failures} failures, next attempt in {wait:.1f} s"
        )

    def _export_metrics(self) -> None:
        self._metrics.limit.labels(self.name).set(self.concurrency.limit)
        self._metrics.in_flight.labels(self.name).set(self._semaphore.in_flight)
        self._metrics.breaker.labels(self.name).set(BREAKER_NUMBERS[self.breaker.state(time.monotonic())])
