"""uvicorn's HTTP protocol with two limits that uvicorn lacks: the time of request headers, and open connections.

Without them, a client that sends a byte now and then (slow loris) holds connections without end, until the process can
open no file any more. uvicorn counts connections only when a request is complete.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADERS_S: Final = 10.0
MAX_CONNECTIONS: Final = 4_096  # open at the same time; a live page holds one, and each costs about 50 KB
SPARE: Final = 256  # beyond them, for connections that get a refusal


class BoundedHttpProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Closes a connection whose next request headers are incomplete HEADERS_S after its opening or their first byte.

    It immediately closes what exceeds `max_connections` by SPARE: no request of it is read.
    """

    headers_s = HEADERS_S
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, *arguments: Any, max_connections: int = MAX_CONNECTIONS, **options: Any) -> None:
        """`arguments` and `options` are those of uvicorn."""
        super().__init__(*arguments, **options)
        self._max_connections = max_connections

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the time of the first request; close a connection that exceeds the room for refusals."""
        super().connection_made(transport)
        if len(self.connections) > self._max_connections + SPARE:
            transport.abort()
            return
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Stop the time while a request is being answered; start it with the first bytes of the next one."""
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering:
            self._stop_waiting()
        elif self._deadline is None:
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        self._deadline = self.loop.call_later(self.headers_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
