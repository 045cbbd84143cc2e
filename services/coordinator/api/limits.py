"""Bounds on what a client can make the coordinator do: size of a body, requests a second. Pure ASGI, no framework."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.coordinator.api.problems import problem

MAX_BODY: Final = 64 * 1024  # a run's configuration has about 1 KB; more is a mistake or an attack
MAX_CLIENTS: Final = 10_000  # bounds the memory of the rate limiter; the oldest client is forgotten first


class BodyLimit:
    """Middleware: refuse a body above MAX_BODY, by its announced length and by what really arrives."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole (small) body first, so that the refusal is a clean answer and not a broken stream."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        try:
            body = await self._read(receive) if announced.isdigit() and int(announced) <= MAX_BODY else None
        except ClientDisconnect:  # half a request is none, even if its half can be read; nobody waits for an answer
            return
        if body is None:
            refusal = problem(413, f"The body is larger than {MAX_BODY // 1024} KB: a run needs about 1 KB.")
            await refusal(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    @staticmethod
    async def _read(receive: Receive) -> bytes | None:
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += bytes(message.get("body", b""))
            if len(body) > MAX_BODY:
                return None
            if not message.get("more_body", False):
                return body


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


@dataclass(slots=True)
class Bucket:
    """Requests a client may still make, and when that was computed (seconds)."""

    left: float
    at: float


class RateLimit:
    """Middleware: a token bucket for each address, before any token is looked at. Probes are not counted."""

    def __init__(self, app: ASGIApp, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._app, self._per_s, self._burst, self._clock = app, per_s, burst, clock
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, or answer 429 with the seconds to wait."""
        if scope["type"] != "http" or scope["path"] in ("/livez", "/readyz", "/metrics") or self._take(scope):
            await self._app(scope, receive, send)
            return
        refusal = problem(429, f"More than {self._per_s:g} requests a second: wait a second.", {"Retry-After": "1"})
        await refusal(scope, receive, send)

    def _take(self, scope: Scope) -> bool:
        client = str((scope.get("client") or ("unknown",))[0])
        now = self._clock()
        bucket = self._buckets.pop(client, None) or Bucket(self._burst, now)
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._per_s)
        bucket.at = now
        self._buckets[client] = bucket
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True
