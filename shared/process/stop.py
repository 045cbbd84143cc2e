"""A pause that a stop ends early."""

import asyncio


async def wait_for_stop(stop: asyncio.Event, seconds: float) -> None:
    """Wait until `stop` is set, but at most this many seconds."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
