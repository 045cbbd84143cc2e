"""Removes the consumers that another version of the product left behind, as after a rollback.

A stream keeps an event until every consumer has acknowledged it, so a consumer without a reader fills the stream. Only
consumers with our metadata are removed; other applications may read the streams, too. Pods of the other version may
still run, and a service creates its deleted consumer again: a consumer is removed once nothing reads it.
"""

import asyncio
import time
from collections.abc import Collection
from typing import Final

import structlog
from nats.js import JetStreamContext, api
from nats.js import errors as js_errors

from shared.bus.jetstream.config import OWNER

READER_S: Final = 60.0  # longest wait for the pods of the other version, which end one by one
QUIET_S: Final = 6.0  # unread: no request or delivery for longer than a service pauses between two fetches
POLL_S: Final = 1.0

log = structlog.get_logger(__name__)


async def remove_former(context: JetStreamContext, stream: str, declared: Collection[str]) -> None:
    """Remove our consumers that are not `declared`, each once it is unread; log those that are read until the end."""
    deadline = time.monotonic() + READER_S
    quiet: dict[str, tuple[int, float]] = {}  # name -> deliveries so far, and since when there was no sign of a reader
    while former := [one for one in await _consumers(context, stream) if _is_ours(one) and one.name not in declared]:
        now = time.monotonic()
        for consumer in former:
            delivered = consumer.delivered.consumer_seq if consumer.delivered else 0
            before, since = quiet.get(consumer.name, (-1, now))
            if consumer.num_waiting or delivered != before:
                quiet[consumer.name] = delivered, now
            elif now - since >= QUIET_S:
                await remove_consumer(context, stream, consumer.name, reason="this version does not read it")
        if now > deadline:
            log.warning(
                "consumers kept: pods of another version read them; after their end provision again",
                stream=stream,
                consumers=[consumer.name for consumer in former],
            )
            return
        await asyncio.sleep(POLL_S)


async def _consumers(context: JetStreamContext, stream: str) -> list[api.ConsumerInfo]:
    """All consumers of a stream; the server lists 256 in an answer."""
    found: list[api.ConsumerInfo] = []
    while page := await context.consumers_info(stream, offset=len(found)):
        found += page
    return found


def _is_ours(consumer: api.ConsumerInfo) -> bool:
    return OWNER.items() <= (consumer.config.metadata or {}).items()


async def remove_consumer(context: JetStreamContext, stream: str, name: str, *, reason: str) -> None:
    """Delete a consumer, if it exists, and log why."""
    try:
        await context.delete_consumer(stream, name)
    except js_errors.NotFoundError:
        return
    log.warning("consumer removed", stream=stream, consumer=name, reason=reason)
