"""Serves /livez, /readyz and /metrics, and passes every other path to the service's own application.

Liveness depends on nothing outside the process: an outage of bus, store or judges must not restart the services.
/metrics needs no token and shows names and figures of runs, so it is not answered through a proxy.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.process.open_files import raise_limit
from shared.runtime.http_protocol import MAX_CONNECTIONS, BoundedHttpProtocol

LAG_S: Final = 10.0  # an event loop blocked for longer counts as hung: the platform restarts the process
TICK_S: Final = 1.0

NOT_FOUND: Final = PlainTextResponse("no such path\n", status_code=404)
"""The answer of a service without an application."""

# A 404 before the application is known would be wrong: a client would give up on a path that appears soon.
STARTING: Final = JSONResponse(
    {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "The service is starting: retry in 2 seconds; /readyz gives the reason.",
    },
    status_code=503,
    headers={"Retry-After": "2"},
    media_type="application/problem+json",
)

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
READ_METHODS: Final = frozenset({"GET", "HEAD"})
PROBES: Final = ("/livez", "/readyz", "/metrics")
PROXY_HEADERS: Final = frozenset({b"forwarded", b"x-forwarded-for"})
"""Routers of Routes and Ingresses add one of them to each request from outside. Prometheus reads the pods directly."""
PROXIED: Final = PlainTextResponse(
    "/metrics is not answered through a proxy: read it at the service's own port\n", status_code=404
)
METHOD_REFUSED: Final = PlainTextResponse("use GET\n", status_code=405, headers={"Allow": "GET, HEAD"})
CROWDED: Final = PlainTextResponse(
    "too many connections: retry in 5 seconds\n", status_code=503, headers={"Retry-After": "5", "Connection": "close"}
)
FILES_OF_A_CONNECTION: Final = 2  # its socket, and what answering it opens: store and bus need files as well

Reason = Callable[[], str | None]


@dataclass(slots=True)
class Health:
    """The state behind the probes. Each reason returns one sentence when something is wrong, else None."""

    not_live: list[Reason] = field(default_factory=list)
    not_ready: list[Reason] = field(default_factory=list)
    app: ASGIApp = field(default_factory=lambda: STARTING)
    ticked: float = field(default_factory=time.monotonic)
    crowded: Callable[[], bool] = lambda: False

    async def tick(self) -> None:
        """Keep `ticked` fresh while the event loop runs."""
        while True:
            self.ticked = time.monotonic()
            await asyncio.sleep(TICK_S)

    def lag(self) -> str | None:
        """Why the event loop counts as hung, or None."""
        late = time.monotonic() - self.ticked - TICK_S
        return f"event loop blocked for {late:.0f} s" if late > LAG_S else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] not in ("http", "websocket"):
            return
        # A CONNECT request names no path, and a response without a body would break its protocol.
        method, path = scope.get("method", "GET"), scope["path"]
        accepted = READ_METHODS if path in PROBES else METHODS
        answer = PROXIED if path == "/metrics" and _is_proxied(scope) else self._answer(path, method in accepted)
        await answer(scope, receive, send)

    def _answer(self, path: str, accepted: bool) -> ASGIApp:
        # Probes are answered in a crowd as well: a restart of the service would not help.
        if path not in PROBES and self.crowded():
            return CROWDED
        return self._route(path) if accepted else METHOD_REFUSED

    def _route(self, path: str) -> ASGIApp:
        if path == "/livez":
            return _probe([self.lag, *self.not_live])
        if path == "/readyz":
            return _probe(self.not_ready)
        if path == "/metrics":
            return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
        return self.app


def _is_proxied(scope: Scope) -> bool:
    return any(name in PROXY_HEADERS for name, _ in scope["headers"])


def _probe(reasons: list[Reason]) -> JSONResponse:
    found = [text for reason in reasons if (text := reason()) is not None]
    return JSONResponse({"ok": not found, "reasons": found}, status_code=503 if found else 200)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the service handles signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. The service creates it first, so that a port in use is reported immediately (OSError).

    `::` accepts IPv6 and IPv4; on a machine without IPv6 it is 0.0.0.0.
    """
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"  # noqa: S104 - the caller asked for all addresses
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if host == "::":
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # the machine's default may refuse IPv4
    try:
        listener.bind((host, port))
        listener.listen()  # now: two processes may bind one port until the first one listens
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener


def address_of(listener: socket.socket) -> str:
    """`HOST:PORT` of a listening socket; an IPv6 host stands in brackets, as in an address of the web."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def connection_limit() -> int:
    """How many connections may be open: MAX_CONNECTIONS, or fewer if this process may open only a few files."""
    return min(MAX_CONNECTIONS, raise_limit() // FILES_OF_A_CONNECTION)


@asynccontextmanager
async def serve(health: Health, listener: socket.socket) -> AsyncIterator[None]:
    """Serve `health` on the socket while the body runs. Open streams get two seconds to end."""
    limit = connection_limit()
    config = uvicorn.Config(
        health,
        http=partial(BoundedHttpProtocol, max_connections=limit),  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
        server_header=False,
        proxy_headers=False,  # else a client on loopback chooses its address by a header, and avoids limits by address
    )
    server = _Server(config)
    health.crowded = lambda: len(server.server_state.connections) > limit
    tasks = [asyncio.create_task(server.serve(sockets=[listener])), asyncio.create_task(health.tick())]
    try:
        yield
    finally:
        server.should_exit = True
        tasks[1].cancel()
        await tasks[0]
        with suppress(asyncio.CancelledError):
            await tasks[1]
        listener.close()
