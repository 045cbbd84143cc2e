"""The HTTP interface: /v1/chat/completions, /v1/models, /health, /metrics, and PUT /behaviour if it is enabled.

`create_app(RulesServerSettings())` is an ASGI application that needs no socket.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from services.judge.rules_server.bad_request import BadRequest
from services.judge.rules_server.chat import ChatRequest, parse_chat
from services.judge.rules_server.metrics import RulesServerMetrics
from services.judge.rules_server.replies import choice_rng, garbage_reply, reply
from services.judge.rules_server.settings import Behaviour, RulesServerSettings
from services.judge.rules_server.usage import PrefixCache, tokens, usage_report


class RulesJudgeServer:
    """State of one server: current behaviour, prefix cache, and free slots."""

    def __init__(self, settings: RulesServerSettings) -> None:
        self.settings = settings
        self.behaviour = settings.behaviour
        self.metrics = RulesServerMetrics()
        self._cache = PrefixCache()
        self._faults = random.Random(settings.seed)  # noqa: S311  # simulated faults are no secrets
        self._slots = asyncio.Semaphore(self.behaviour.max_concurrent)

    async def complete(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        self.metrics.requests.inc()
        if self._slots.locked() and self.metrics.waiting_now >= self.behaviour.max_waiting:
            return self._error(429, "too many queued requests")
        try:
            chat = parse_chat(await request.body(), self.settings.models)
        except BadRequest as error:
            return self._error(400, str(error))
        slots = self._slots  # a change of behaviour may replace them
        with self.metrics.wait():
            await slots.acquire()
        try:
            with self.metrics.serve():
                return await self._serve(chat)
        finally:
            slots.release()

    async def _serve(self, chat: ChatRequest) -> Response:
        now = self.behaviour
        delay = now.latency_ms / 1000 * (1 + now.jitter * self._faults.uniform(-1, 1))
        if delay > 0:
            await asyncio.sleep(delay)
        if self._faults.random() < now.error_rate:
            return self._error(now.error_status, "a simulated error")
        try:
            answer = self._answer(chat)
        except BadRequest as error:
            return self._error(400, str(error))
        raw = json.dumps(answer).encode()
        if now.first_byte_s or now.drip_s:
            return StreamingResponse(delayed_body(raw, now), media_type="application/json")
        return Response(raw, media_type="application/json")

    def _answer(self, chat: ChatRequest) -> dict[str, Any]:
        prompt, cached = self._cache.count(chat.model, chat.parts)
        if prompt > self.settings.context_tokens:
            raise BadRequest(f"the prompt has {prompt} tokens, the limit is {self.settings.context_tokens}")
        replies = [self._reply(chat, index) for index in range(1 if self.behaviour.ignore_n else chat.n)]
        output = sum(tokens(text.encode()) for text in replies)
        self.metrics.count(chat.model, prompt, cached, output, len(replies))
        choices = [
            {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for i, text in enumerate(replies)
        ]
        usage = usage_report(prompt, cached, output, self.behaviour.usage)
        return {
            "id": f"chatcmpl-{self.metrics.answered}",
            "object": "chat.completion",
            "created": 0,
            "model": chat.model,
            "choices": choices,
            **({"usage": usage} if usage else {}),
        }

    def _reply(self, chat: ChatRequest, index: int) -> str:
        if self._faults.random() < self.behaviour.garbage_rate:
            return garbage_reply(self._faults)
        rng = choice_rng(self.settings.seed, chat.seed, index, chat.text)
        # Temperature 0 is greedy: all choices are equal, without noise.
        noise = self.behaviour.vote_noise if chat.temperature > 0 else 0.0
        return reply(chat.schema, chat.text, noise, rng, obey_texts=self.behaviour.obey_texts)

    def _error(self, status: int, message: str) -> Response:
        self.metrics.errors.labels(str(status)).inc()
        after = self.behaviour.retry_after
        headers = {"retry-after": str(after)} if after is not None else {}
        body = {"error": {"message": message, "type": "error", "param": None, "code": status}}
        return JSONResponse(body, status_code=status, headers=headers)

    async def get_models(self, request: Request) -> Response:
        """GET /v1/models, with the context length in the field that vLLM uses."""
        length = self.settings.context_tokens
        data = [
            {"id": name, "object": "model", "created": 0, "owned_by": "zelda-rlaif", "max_model_len": length}
            for name in self.settings.models
        ]
        return JSONResponse({"object": "list", "data": data})

    async def get_health(self, request: Request) -> Response:
        """GET /health."""
        return PlainTextResponse("ok\n")

    async def get_metrics(self, request: Request) -> Response:
        """GET /metrics."""
        return PlainTextResponse(self.metrics.text())

    async def put_behaviour(self, request: Request) -> Response:
        """PUT /behaviour: change some fields of the behaviour; the response has all fields."""
        if not self.settings.control:
            return self._error(403, "start the server with --control to change its behaviour")
        try:
            change = Behaviour.model_validate({**self.behaviour.model_dump(), **json.loads(await request.body())})
        except (ValidationError, ValueError, TypeError) as error:
            return self._error(400, f"invalid behaviour: {error}"[:500])
        if change.max_concurrent != self.behaviour.max_concurrent:
            self._slots = asyncio.Semaphore(change.max_concurrent)
        self.behaviour = change
        return JSONResponse(change.model_dump())


async def delayed_body(raw: bytes, behaviour: Behaviour) -> AsyncIterator[bytes]:
    """Yield a body whose first byte, or every byte, is delayed."""
    await asyncio.sleep(behaviour.first_byte_s)
    if not behaviour.drip_s:
        yield raw
        return
    for byte in raw:
        await asyncio.sleep(behaviour.drip_s)
        yield bytes([byte])


def create_app(settings: RulesServerSettings) -> Starlette:
    """Return the server as an ASGI application; `app.state.server` is its state."""
    server = RulesJudgeServer(settings)
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", server.complete, methods=["POST"]),
            Route("/v1/models", server.get_models),
            Route("/health", server.get_health),
            Route("/metrics", server.get_metrics),
            Route("/behaviour", server.put_behaviour, methods=["PUT"]),
        ]
    )
    app.state.server = server
    return app
