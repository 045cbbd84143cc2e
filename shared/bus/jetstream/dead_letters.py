"""The dead-letter stream on JetStream, for operators: list, replay, drop. It reads messages without consuming them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from nats.js import api
from nats.js import errors as js_errors

from shared.bus.jetstream.bus import AWAY, NatsBus
from shared.bus.jetstream.config import ATTEMPT, CONSUMER, REASON, SUBJECT
from shared.bus.port import DeadLetter, UnknownDeadLetter
from shared.bus.topology import DEAD_ROOT, DEAD_STREAM
from shared.errors import Permanent, Transient

_NOWHERE: Final = datetime.fromtimestamp(0, UTC)


class NatsDeadLetters:
    """The dead letters of one bus, oldest first. Of the services, only the coordinator may read and remove them."""

    def __init__(self, bus: NatsBus) -> None:
        self._bus = bus

    async def list(self, limit: int = 100, *, after: int = 0, consumer: str | None = None) -> Sequence[DeadLetter]:
        """The oldest `limit` dead letters; see the port. Each is one request."""
        found: list[DeadLetter] = []
        subject = ">" if consumer is None else f"{DEAD_ROOT}.{consumer}"
        while len(found) < limit:
            message = await self._read(after + 1, subject)
            if message is None:
                break
            found.append(_letter(message))
            after = found[-1].number
        return found

    async def get(self, number: int) -> DeadLetter:
        """One dead letter."""
        message = await self._read(number)
        if message is None:
            raise UnknownDeadLetter(number)
        return _letter(message)

    async def replay(self, number: int) -> None:
        """Publish again under a new id, because the bus remembers the old one; then drop."""
        letter = await self.get(number)
        if not letter.subject.startswith("zelda."):
            raise Permanent(
                f"dead letter {number} is the server's own notice: drop it; the reconciler republishes its event"
            )
        await self._bus.publish_raw(letter.subject, letter.raw, {"Nats-Msg-Id": f"replay.{number}"})
        await self.drop(number)

    async def drop(self, number: int) -> None:
        """Remove one dead letter."""
        await self.get(number)
        try:
            await self._bus.context.delete_msg(DEAD_STREAM, number)
        except AWAY as error:
            raise Transient(f"bus: dead letter {number} not dropped: {error}") from error

    async def _read(self, number: int, first_on: str | None = None) -> api.RawStreamMsg | None:
        """The message with this number; with a subject, the first one on it from this number on."""
        try:
            if first_on is not None:
                return await self._bus.context.get_msg(DEAD_STREAM, seq=number, next=True, subject=first_on)
            return await self._bus.context.get_msg(DEAD_STREAM, seq=number)
        except js_errors.NotFoundError:
            return None
        except AWAY as error:
            raise Transient(f"bus: dead letters not read: {error}") from error


def _letter(message: api.RawStreamMsg) -> DeadLetter:
    headers, on = message.headers or {}, message.subject or ""
    own = on.startswith(DEAD_ROOT)
    return DeadLetter(
        number=message.seq or 0,
        consumer=headers.get(CONSUMER, on.rpartition(".")[2]),
        subject=headers.get(SUBJECT, on),
        reason=headers.get(REASON, "no reason given" if own else "delivered too often: the bus gave up"),
        attempt=int(headers.get(ATTEMPT, "0")),
        time=message.time or _NOWHERE,
        raw=message.data or b"",
    )
