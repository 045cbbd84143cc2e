"""Asks an HTTP address whether it is up. A refused connection is an answer: not yet."""

import asyncio
import urllib.error
import urllib.request


def _ask(url: str, seconds: float) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=seconds) as answer:  # noqa: S310 (the address is ours)
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def is_up(url: str, seconds: float = 2.0) -> bool:
    """Whether `url` answers with status 200 within `seconds`."""
    return await asyncio.to_thread(_ask, url, seconds)
