"""A pause that an event ends early."""

import asyncio
from contextlib import suppress


async def wait_for_event(event: asyncio.Event, seconds: float) -> None:
    """Wait until `event` is set, but at most this many seconds.

    Not by `asyncio.wait_for`: that of Python 3.11 loses a cancellation that comes in the same moment as the event.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
