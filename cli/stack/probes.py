"""Probes of servers on loopback. A refused connection means: not up yet."""

import asyncio
import urllib.error
import urllib.request


def _get_ok(url: str, seconds: float) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=seconds) as response:  # noqa: S310 (loopback addresses only)
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def is_up(url: str, seconds: float = 2.0) -> bool:
    """Whether `url` returns status 200 within `seconds`."""
    return await asyncio.to_thread(_get_ok, url, seconds)


async def greets(port: int, greeting: bytes, seconds: float = 2.0) -> bool:
    """Whether the server on this port of loopback begins with `greeting`, as NATS does with `INFO`."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                return await reader.readexactly(len(greeting)) == greeting
            finally:
                writer.close()
    except (OSError, EOFError, TimeoutError):
        return False
