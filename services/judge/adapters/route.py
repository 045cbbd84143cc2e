"""One OpenAI-compatible address: connection pool, total timeouts, two quick attempts, breaker, adaptive concurrency.

Each route has its own of everything, so that a slow one cannot slow the others. Its connections never
follow a redirect, read proxies from the environment, or skip certificate checks.
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

from services.judge import telemetry
from services.judge.adapters.client_pool import ClientPool
from services.judge.adapters.completions import (
    MAX_RESPONSE_BYTES,
    InvalidCompletion,
    error_message,
    parse_completion,
    parse_model_list,
)
from services.judge.adapters.semaphore import AcquireTimeout, AdaptiveSemaphore
from services.judge.config import RouteSpec
from services.judge.domain.breaker import Breaker
from services.judge.domain.budget import BudgetExhausted
from services.judge.domain.call_outcome import CallOutcome, classify_response, pause_before_retry
from services.judge.domain.concurrency import ConcurrencyController
from services.judge.ports import Completion, CompletionRequest, RequestRefused, RouteUnavailable
from shared.config.settings import read_token

LIST_MODELS_TIMEOUT_S = (
    10.0  # for the whole list of models; longer and who waits for it, the first time at the start, seems to hang
)
# No server has seen the whole request.
NOT_RECEIVED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.WriteError, httpx.WriteTimeout, ssl.SSLError)
REQUEST_ERRORS = (
    400,
    413,
    422,
)  # this very request is wrong; other refusals (401, 403, 404) are about the configuration
AUTH_ERRORS = (401, 403)
_BREAKER_VALUE = {"closed": 0, "half-open": 1, "open": 2}


class RouteClient:
    """A model server behind one address."""

    def __init__(self, name: str, spec: RouteSpec, *, use_direct: bool = False) -> None:
        self.name, self._spec = name, spec
        self.breaker = Breaker(spec.breaker_failures, spec.breaker_open_s)
        self.concurrency = ConcurrencyController(maximum=spec.max_concurrent, initial=min(8, spec.max_concurrent))
        self._semaphore = AdaptiveSemaphore(lambda: self.concurrency.limit)
        self._not_before = 0.0  # no call until then
        self._busy_until = 0.0  # a busy server asked for silence until then
        self._last_response = time.monotonic()
        self._rng = random.Random()  # noqa: S311  # jitter, not a secret
        self.clients = ClientPool(spec, use_direct=use_direct)

    async def complete(self, question: CompletionRequest) -> Completion:
        """Answer, or raise RouteUnavailable or RequestRefused."""
        waited = time.monotonic()
        self._check_breaker(waited)
        await self._respect_retry_after(self._spec.wait_s)
        try:
            async with self._semaphore.slot(self._spec.wait_s):
                telemetry.WAIT_SECONDS.labels(self.name).observe(time.monotonic() - waited)
                return await self._complete_in_time(question)
        except AcquireTimeout as error:
            raise RouteUnavailable(f"route {self.name}: {error}") from error

    async def list_models(self) -> Mapping[str, int | None]:
        """The models served here and, where the server tells, their longest context in tokens.

        Empty if the server does not say; RouteUnavailable if it cannot be reached, cannot serve now, or refuses us.
        """
        try:
            async with asyncio.timeout(LIST_MODELS_TIMEOUT_S):
                status, headers, raw = await self._exchange("GET", "/models", self._request_headers(""))
        except TimeoutError as error:
            raise RouteUnavailable(
                f"route {self.name}: no list of models within {LIST_MODELS_TIMEOUT_S:g} s"
            ) from error
        except (httpx.HTTPError, InvalidCompletion, ssl.SSLError) as error:
            raise RouteUnavailable(f"route {self.name}: {type(error).__name__} {error}"[:200]) from error
        outcome = classify_response(status, headers, datetime.now(UTC))
        if status in AUTH_ERRORS:
            raise RouteUnavailable(f"route {self.name}: {outcome.detail} for the list of models (check its token)")
        if outcome.kind in ("overload", "outage"):
            raise RouteUnavailable(f"route {self.name}: {outcome.detail} for the list of models")
        return parse_model_list(raw) if outcome.kind == "answer" else {}

    def seconds_since_response(self) -> float:
        """Seconds since it last answered any call, or since the end of the wait that it asked for when it was busy."""
        return max(0.0, time.monotonic() - max(self._last_response, self._busy_until))

    async def close(self) -> None:
        """Close all connections."""
        await self.clients.close()

    async def _complete_in_time(self, question: CompletionRequest) -> Completion:
        """Both attempts within the total time."""
        begun = time.monotonic()
        self._export_metrics()
        try:
            async with asyncio.timeout(self._spec.total_timeout_s):
                return await self._attempts(question, begun)
        except TimeoutError as error:
            outcome = self._on_failure(
                CallOutcome("outage", f"no answer within {self._spec.total_timeout_s:g} s"), overload=True
            )
            raise RouteUnavailable(f"route {self.name}: {outcome.detail}") from error
        except (asyncio.CancelledError, BudgetExhausted):
            self.breaker.release_probe()  # ended by us: says nothing about the route
            raise
        finally:
            telemetry.CALL_SECONDS.labels(self.name).observe(time.monotonic() - begun)
            self._export_metrics()

    async def _attempts(self, question: CompletionRequest, begun: float) -> Completion:
        body = json.dumps({**question.body, "n": question.n, "seed": question.seed}).encode()
        headers = self._request_headers(question.fairness)
        for left in reversed(range(self._spec.attempts)):
            remaining = self._spec.total_timeout_s - (time.monotonic() - begun)
            await self._respect_retry_after(remaining)
            if not self.breaker.admit(time.monotonic()):
                raise self._breaker_error()
            question.on_send()
            answer = await self._attempt(question, body, headers, begun)
            if isinstance(answer, Completion):
                return answer
            remaining = self._spec.total_timeout_s - (time.monotonic() - begun)
            pause = pause_before_retry(answer, remaining, self._rng.random()) if left else None
            if pause is None:
                raise RouteUnavailable(f"route {self.name}: {answer.detail}")
            await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _attempt(
        self, question: CompletionRequest, body: bytes, headers: Mapping[str, str], begun: float
    ) -> Completion | CallOutcome:
        """One request. Whatever ends it, the breaker hears of it, and the books if it was served without an answer."""
        try:
            status, answer_headers, raw = await self._exchange("POST", "/chat/completions", headers, body)
        except NOT_RECEIVED as error:
            return self._on_transport_error(error)
        except (httpx.HTTPError, InvalidCompletion) as error:
            question.on_lost_response()
            return self._on_transport_error(error)
        except asyncio.CancelledError:
            question.on_lost_response()
            raise
        outcome = classify_response(status, answer_headers, datetime.now(UTC))
        if outcome.kind == "answer":
            return self._on_response(question, raw, begun)
        if outcome.kind == "refused":
            self.breaker.record_success()
            self._on_refusal(status, raw)
        told = f"{outcome.detail}: {error_message(raw)}".removesuffix(": ")
        outcome = dataclasses.replace(outcome, detail=told)
        return self._on_failure(outcome, overload=outcome.kind == "overload", alive=status == 429)

    def _on_transport_error(self, error: Exception) -> CallOutcome:
        return self._on_failure(CallOutcome("outage", f"{type(error).__name__} {error}".strip()[:160]))

    def _on_response(self, question: CompletionRequest, raw: bytes, begun: float) -> Completion | CallOutcome:
        try:
            answer = parse_completion(raw, time.monotonic() - begun)
        except InvalidCompletion as error:
            question.on_lost_response()
            told = f"HTTP 200, but {error}: {error_message(raw)}".removesuffix(": ")
            return self._on_failure(CallOutcome("outage", told))
        self._mark_alive()
        self.concurrency.record_success(self._semaphore.in_flight)
        telemetry.CALLS.labels(self.name, "answer").inc()
        return answer

    def _on_refusal(self, status: int, raw: bytes) -> None:
        telemetry.CALLS.labels(self.name, "refused").inc()
        message = f"route {self.name}: HTTP {status}: {error_message(raw)}"
        if status in REQUEST_ERRORS:
            self._mark_alive()
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
        telemetry.CALLS.labels(self.name, outcome.kind).inc()
        return outcome

    def _mark_alive(self) -> None:
        self.breaker.record_success()
        self._last_response = time.monotonic()
        self._semaphore.record_progress()

    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body; the body is read only up to a limit, whatever the server sends."""
        async with (
            self.clients.client() as client,
            client.stream(method, path, content=body, headers=headers) as response,
        ):
            parts, total = [], 0
            async for part in response.aiter_bytes():
                total += len(part)
                if total > MAX_RESPONSE_BYTES:
                    raise InvalidCompletion(f"an answer of more than {MAX_RESPONSE_BYTES} bytes")
                parts.append(part)
            return response.status_code, response.headers, b"".join(parts)

    async def _respect_retry_after(self, at_most_s: float) -> None:
        """Wait as long as the server's Retry-After asks for; raise RouteUnavailable if that is too long."""
        while (pause := self._not_before - time.monotonic()) > 0:
            if pause > at_most_s:
                raise RouteUnavailable(f"route {self.name}: asked to wait {pause:.1f} s more")
            await asyncio.sleep(pause + self._rng.random() * 0.1)

    def _check_breaker(self, now: float) -> None:
        """Fail at once while the breaker is open, without standing in line."""
        if self.breaker.state(now) == "open":
            raise self._breaker_error()

    def _breaker_error(self) -> RouteUnavailable:
        wait = self.breaker.seconds_until_probe(time.monotonic())
        return RouteUnavailable(
            f"route {self.name}: breaker open after {self.breaker.failures} failures, tried again in {wait:.1f} s"
        )

    def _request_headers(self, fairness: str) -> dict[str, str]:
        """llm-d's headers in both spellings: routers before 0.9 know only the older one."""
        headers = {"content-type": "application/json"}
        flow = self._spec.fairness or fairness
        for name, value in (("objective", self._spec.objective), ("fairness-id", flow)):
            if value:
                headers[f"x-llm-d-inference-{name}"] = value
                headers[f"x-gateway-inference-{name}"] = value
        if self._spec.token_file is not None:
            headers["authorization"] = f"Bearer {_token(self.name, self._spec)}"
        return headers

    def _export_metrics(self) -> None:
        telemetry.LIMIT.labels(self.name).set(self.concurrency.limit)
        telemetry.IN_FLIGHT.labels(self.name).set(self._semaphore.in_flight)
        telemetry.BREAKER.labels(self.name).set(_BREAKER_VALUE[self.breaker.state(time.monotonic())])


def _token(name: str, spec: RouteSpec) -> str:
    """The token as it is now: service-account tokens rotate under a running process."""
    assert spec.token_file is not None
    try:
        return read_token(spec.token_file)
    except ValueError as error:
        raise RouteUnavailable(f"route {name}: token file {error}") from error
