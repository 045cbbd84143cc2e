"""One delivered JetStream message and its answers."""

import json
from collections.abc import Awaitable, Callable
from typing import Final

from nats import errors as nats_errors
from nats.aio.msg import Msg

from shared.bus.jetstream.config import ATTEMPT, CONSUMER, REASON, SUBJECT
from shared.bus.port import Subscription, one_line
from shared.bus.topology import dead_subject
from shared.errors import Transient

ANSWER_S: Final = 5.0  # longest wait for the server's confirmation of an answer

Publish = Callable[[str, bytes, dict[str, str]], Awaitable[bool]]
"""Stores bytes on a subject, with headers."""


class NatsDelivery:
    """One delivered message. Every answer waits for the server's confirmation: an unconfirmed one dies with us."""

    def __init__(self, publish: Publish, message: Msg, subscription: Subscription) -> None:
        self._publish, self._message, self._subscription = publish, message, subscription
        self.raw, self.subject = message.data, message.subject
        self.number, self.attempt = message.metadata.sequence.stream, message.metadata.num_delivered

    async def ack(self) -> None:
        """Done."""
        await self._answer(b"+ACK")

    async def nak(self, delay_s: float) -> None:
        """Again after `delay_s`."""
        await self._answer(b"-NAK " + json.dumps({"delay": int(delay_s * 1e9)}).encode() if delay_s > 0 else b"-NAK")

    async def in_progress(self) -> None:
        """Restart the timer."""
        await self._answer(b"+WPI")

    async def reject(self, reason: str) -> None:
        """Keep the message in the dead-letter stream, and only then end its delivery."""
        headers = {
            "Nats-Msg-Id": f"dead.{self._subscription.name}.{self.number}",
            REASON: one_line(reason),
            CONSUMER: self._subscription.name,
            SUBJECT: self.subject,
            ATTEMPT: str(self.attempt),
        }
        await self._publish(dead_subject(self._subscription), self.raw, headers)
        await self._answer(b"+TERM")

    async def _answer(self, answer: bytes) -> None:
        try:
            await self._message._client.request(self._message.reply, answer, timeout=ANSWER_S)
        except (nats_errors.Error, OSError, TimeoutError) as error:
            what = answer.decode("ascii", "replace").split()[0]
            raise Transient(f"bus: {what} for {self._subscription.name!r} not confirmed: {error}") from error
