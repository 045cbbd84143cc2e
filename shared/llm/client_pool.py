"""The HTTP connections of one route: a stack of clients with one connection each, the last used first.

A single client with a shared pool scans all its connections for every request; with 32 of them, the scan costs more
than the request.
"""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

from shared.llm.completions import MAX_RESPONSE_BYTES, InvalidCompletion
from shared.llm.route_spec import RouteSpec

KEEPALIVE_S = 60.0  # close idle connections before the server does; its own limit is often 75 s


class ClientPool:
    """Lends clients without a limit: the caller bounds the concurrency. Tests set `transport` to replace the network.

    The clients never follow redirects, read proxies from the environment, or skip certificate checks.
    """

    def __init__(self, spec: RouteSpec, *, use_direct: bool) -> None:
        self._spec, self._address, self._proxy = spec, spec.address(use_direct), spec.proxy_of(use_direct)
        self._trust = ssl.create_default_context(cafile=None if spec.ca_file is None else str(spec.ca_file))
        self._idle: list[httpx.AsyncClient] = []
        self.transport: httpx.AsyncBaseTransport | None = None

    async def exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body. Raises InvalidCompletion for a body of more than MAX_RESPONSE_BYTES."""
        async with (
            self.borrow() as client,
            client.stream(method, path, content=body, headers=headers) as response,
        ):
            parts, total = [], 0
            async for part in response.aiter_bytes():
                total += len(part)
                if total > MAX_RESPONSE_BYTES:
                    raise InvalidCompletion(f"the answer has more than {MAX_RESPONSE_BYTES} bytes")
                parts.append(part)
            return response.status_code, response.headers, b"".join(parts)

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[httpx.AsyncClient]:
        """Borrow a client. A client whose call failed or was cancelled is closed."""
        client = self._idle.pop() if self._idle else self._new()
        try:
            yield client
        except BaseException:
            await client.aclose()
            raise
        self._idle.append(client)

    async def close(self) -> None:
        """Close the idle clients."""
        while self._idle:
            await self._idle.pop().aclose()

    def _new(self) -> httpx.AsyncClient:
        spec = self._spec
        return httpx.AsyncClient(
            base_url=self._address,
            timeout=httpx.Timeout(max(spec.total_timeout_s, spec.longest_timeout_s), connect=spec.connect_timeout_s),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEEPALIVE_S),
            verify=self._trust,
            follow_redirects=False,
            trust_env=False,
            proxy=self._proxy,
            transport=self.transport,
        )
