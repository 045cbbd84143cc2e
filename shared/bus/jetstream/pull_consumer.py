"""Pulls messages of one durable consumer with JetStream's pull protocol.

The client's own `fetch` reports every status as "no message yet", so a deleted consumer looks like silence. This module
interprets each status. (https://docs.nats.io/reference/reference-protocols/nats_api_reference, CONSUMER.MSG.NEXT)
"""

import asyncio
import json
import time
from typing import Final

from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as InboxSubscription

from shared.bus.port import ConsumerMissing
from shared.errors import Transient

GRACE_S: Final = 0.5  # the server ends a request itself; this much later its answer counts as lost
QUEUE_BYTES: Final = 16 * 1024 * 1024  # 64 events of 8 KiB are half a megabyte: the client must never drop any
_EMPTY: Final = ("404", "408")
_GONE: Final = ("503",)


class PullConsumer:
    """Requests of one consumer on `subject`, answered into one inbox. One fetch runs at a time."""

    def __init__(self, client: Client, stream: str, consumer: str) -> None:
        self._client = client
        self.subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._consumer = consumer
        self._inbox = client.new_inbox()
        self._requests = 0
        self._answers: InboxSubscription | None = None
        self._lock = asyncio.Lock()

    async def fetch(self, batch: int, timeout_s: float) -> list[Msg]:
        """Return the waiting messages, up to `batch`; without any, wait `timeout_s` for the first."""
        async with self._lock:
            if self._answers is None:
                self._answers = await self._client.subscribe(f"{self._inbox}.*", pending_bytes_limit=QUEUE_BYTES)
            if late := await self._late(batch):
                return late
            messages = await self._request({"batch": batch, "no_wait": True}, batch, timeout_s)
            if messages:
                return messages
            expires = int(timeout_s * 1e9)
            return await self._request({"batch": 1, "expires": expires}, 1, timeout_s + GRACE_S)

    async def close(self) -> None:
        """Leave the inbox, so that the server hands no further message to this reader."""
        if self._answers is not None:
            await self._answers.unsubscribe()
            self._answers = None

    async def _late(self, batch: int) -> list[Msg]:
        """Messages that arrived after their request was given up; a new request alone would never return them."""
        messages: list[Msg] = []
        while self._answers is not None and self._answers.pending_msgs > 0 and len(messages) < batch:
            message = await self._answer(time.monotonic() + GRACE_S)
            if message is not None and _status(message) is None:
                messages.append(message)
        return messages

    async def _request(self, body: dict[str, int | bool], batch: int, timeout_s: float) -> list[Msg]:
        self._requests += 1
        reply = f"{self._inbox}.{self._requests}"
        await self._client.publish(self.subject, json.dumps(body).encode(), reply=reply)
        deadline = time.monotonic() + timeout_s
        messages: list[Msg] = []
        while len(messages) < batch:
            message = await self._answer(deadline)
            if message is None:
                return messages  # the connection was lost; the next fetch requests again
            status = _status(message)
            if status is None:
                messages.append(message)
            elif message.subject == reply and self._ends(status, message, raises=not messages):
                return messages
        return messages

    async def _answer(self, deadline: float) -> Msg | None:
        if self._answers is None:
            return None
        try:
            return await self._answers.next_msg(timeout=max(0.001, deadline - time.monotonic()))
        except TimeoutError:
            return None
        except nats_errors.Error as error:
            raise Transient(f"bus: fetch for {self._consumer!r} failed: {error}") from error

    def _ends(self, status: str, message: Msg, raises: bool) -> bool:
        """Whether a status ends the request; raises when it means more than "no message".

        Without `raises` a failure only ends it: the messages before it would otherwise wait for their redelivery, and
        the next request meets the same failure.
        """
        text = (message.headers or {}).get("Description", "").strip().splitlines()[:1]
        if status in _EMPTY:
            return True
        if status.startswith("1"):  # idle heartbeat
            return False
        if not raises:
            return True
        if status in _GONE or "Consumer Deleted" in text:
            raise ConsumerMissing(f"bus: consumer {self._consumer!r} is missing (status {status})")
        raise Transient(f"bus: fetch for {self._consumer!r} refused: {status} {' '.join(text)}")


def _status(message: Msg) -> str | None:
    """The status of a protocol answer, or None for a real message (which has a body or no status header)."""
    return (message.headers or {}).get("Status") if not message.data else None
