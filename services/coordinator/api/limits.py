"""Limits on clients: size of a body, requests per second. Pure ASGI, no framework."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.coordinator.api.problems import problem_response
from shared.process.bounded_cache import BoundedCache

Client = TypeVar("Client", bytes, str)
MAX_BODY: Final = 64 * 1024  # bytes; the configuration of a run has about 1 KB
BODY_S: Final = 20.0  # seconds for a whole body: a slower client would hold its connection without end
MAX_CLIENTS: Final = 10_000  # of each kind: bounds the memory of the limits; the least recent client is dropped first


class BodySizeLimit:
    """Middleware: refuses a body above MAX_BODY bytes, by its declared and by its real length, or after `seconds`."""

    def __init__(self, app: ASGIApp, seconds: float = BODY_S) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body first, so that the client gets a complete response and not a broken stream."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive) if declared.isdigit() and int(declared) <= MAX_BODY else None
        except TimeoutError:
            late = problem_response(408, f"The body did not arrive within {self._seconds:g} seconds: send it again.")
            await late(scope, receive, send)
            return
        except ClientDisconnect:  # an incomplete request must not start anything, and no client waits for the response
            return
        if body is None:
            refusal = problem_response(413, f"The body is larger than {MAX_BODY // 1024} KB: a run needs about 1 KB.")
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


class SecurityHeaders:
    """Middleware: no answer is guessed to be a script, shown within a foreign page, or allowed to load anything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers; a page's own policy stays."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
            await send(message)

        await self._app(scope, receive, send_with_headers)


@dataclass(slots=True)
class RequestBucket:
    """Requests that a client can still make, and the time of that number in seconds."""

    left: float
    at: float


class RequestLimits:
    """A bucket of requests for each accepted token, and one for each address of all other requests.

    They are separate because behind a router all requests have the router's address: strangers there cannot use up
    what operators may send.
    """

    def __init__(self, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Each bucket holds `burst` requests and gains `per_s` a second."""
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._tokens: BoundedCache[bytes, RequestBucket] = BoundedCache(MAX_CLIENTS)
        self._addresses: BoundedCache[str, RequestBucket] = BoundedCache(MAX_CLIENTS)

    def of_token(self, token: str) -> ASGIApp | None:
        """The answer 429 if this token has sent too much, else None; counts the request."""
        digest = sha256(token.encode()).digest()
        return None if self._take(self._tokens, digest) else self._refusal("token")

    def of_address(self, scope: Scope) -> ASGIApp | None:
        """The answer 429 if the client's address has sent too much without a valid token, else None; counts it."""
        address = str((scope.get("client") or ("unknown",))[0])
        return None if self._take(self._addresses, address) else self._refusal("address")

    def _take(self, buckets: BoundedCache[Client, RequestBucket], client: Client) -> bool:
        now = self._clock()
        bucket = buckets.get_or_make(client, lambda: RequestBucket(self._burst, now))
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._per_s)
        bucket.at = now
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True

    def _refusal(self, client: str) -> ASGIApp:
        detail = f"This {client} sends more than {self._per_s:g} requests per second: wait a second."
        return problem_response(429, detail, {"Retry-After": "1"})
