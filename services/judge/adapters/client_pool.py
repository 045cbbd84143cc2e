"""The connections of one route: a stack of HTTP clients with one connection each, the last used first.

One shared pool would look at all its connections for every request, which at 32 of them costs more than the request.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from services.judge.config import RouteSpec

KEEP_S = 60.0  # idle connections are closed by then; a server's own limit is often 75 s


class ClientPool:
    """Lends clients. How many are lent at once is the caller's affair. `transport` replaces the network in tests."""

    def __init__(self, spec: RouteSpec, *, use_direct: bool) -> None:
        self._spec, self._address = spec, spec.address(use_direct)
        self._trust = ssl.create_default_context(cafile=None if spec.ca_file is None else str(spec.ca_file))
        self._idle: list[httpx.AsyncClient] = []
        self.transport: httpx.AsyncBaseTransport | None = None

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Borrow a client. One whose call failed or was cancelled is not used again."""
        client = self._idle.pop() if self._idle else self._new()
        try:
            yield client
        except BaseException:
            await client.aclose()
            raise
        self._idle.append(client)

    async def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            await self._idle.pop().aclose()

    def _new(self) -> httpx.AsyncClient:
        spec = self._spec
        return httpx.AsyncClient(
            base_url=self._address,
            timeout=httpx.Timeout(spec.total_timeout_s, connect=spec.connect_timeout_s),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEEP_S),
            verify=self._trust,
            follow_redirects=False,
            trust_env=False,
            transport=self.transport,
        )
