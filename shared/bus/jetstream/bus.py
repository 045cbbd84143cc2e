"""The bus on NATS JetStream, with guards around the client's habits.

Each guard answers a measured behaviour: a denied publish looks like a timeout, a deleted consumer like silence, a
cancelled fetch swallows the next message, and an unconfirmed `ack()` is lost with the process.
"""

import asyncio
import re
import ssl
from collections.abc import Sequence
from typing import Any, Final

import structlog
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js import errors as js_errors

from shared.bus import metrics
from shared.bus.event_spans import publish_span
from shared.bus.jetstream.config import CONSUMER_FIELDS, STREAM_FIELDS, consumer_config, differences, stream_config
from shared.bus.jetstream.delivery import NatsDelivery
from shared.bus.jetstream.pull_consumer import PullConsumer
from shared.bus.port import ConsumerMissing, Delivery, Subscription
from shared.bus.subjects import pattern, subject
from shared.bus.topology import stream_of
from shared.config.settings import BusSettings, read_secret
from shared.contracts.envelope import MAX_EVENT_BYTES, Envelope
from shared.errors import Fatal, Permanent, Transient

CALL_S: Final = 5.0
PUBLISH_PAUSES_S: Final = (
    0.25,
    0.5,
    0.0,
)  # one attempt each, with one id: an unanswered publish may be stored
CONNECT_S: Final = 10.0  # the client's own connect never returns when it reconnects endlessly
PING_S: Final = 4  # three of them detect a paused server; the client's defaults take six minutes
_DENIED: Final = re.compile(r'permissions violation for (?:publish|subscription) to "([^"]+)"', re.IGNORECASE)
# What the client raises when the server is away, slow or restarting.
AWAY: Final = (nats_errors.Error, js_errors.Error, OSError, TimeoutError)

log = structlog.get_logger(__name__)


async def connect(settings: BusSettings, service: str) -> "NatsBus":
    """A connected bus; Transient while no server answers, Fatal when it refuses our credentials."""
    bus = NatsBus(service)
    await bus.open(settings)
    return bus


class NatsBus:
    """One connection that reconnects endlessly. `closed` is set when the client gave up on its own."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._client = Client()
        self._js = JetStreamContext(self._client, timeout=CALL_S)
        self._pulls: dict[str, PullConsumer] = {}
        self._denied: set[str] = set()
        self._first_error: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._abandoned: set[asyncio.Future[None]] = set()
        self._closing = False
        self.closed = asyncio.Event()

    async def open(self, settings: BusSettings) -> None:
        """Connect, or raise with the first reason of failure; the client alone would retry silently and endlessly."""
        connecting = asyncio.ensure_future(self._client.connect(**self._options(settings)))
        both: set[asyncio.Future[Any]] = {connecting, self._first_error}
        await asyncio.wait(both, timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
        if connecting.done() and connecting.exception() is None:
            self._first_error.cancel()  # later errors are only logged
            return
        self._closing = True
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)
        await self._client.close()
        error = self._first_error.result() if self._first_error.done() else TimeoutError("no answer")
        if "authorization" in str(error).lower():
            raise Fatal(f"bus {settings.url} refuses the credentials of {self._service!r}") from error
        raise Transient(f"bus {settings.url} not reached: {error}") from error

    @property
    def connected(self) -> bool:
        """Whether the client is connected."""
        return bool(self._client.is_connected)

    @property
    def context(self) -> JetStreamContext:
        """The JetStream API, for provisioning and dead letters."""
        return self._js

    async def publish(self, event: Envelope, *, replay_nonce: int = 0) -> None:
        """Store the event; see the port."""
        with publish_span(event) as traced:
            await self._publish(traced, replay_nonce)

    async def _publish(self, event: Envelope, replay_nonce: int) -> None:
        raw = event.to_bytes()
        if len(raw) > MAX_EVENT_BYTES:
            raise Permanent(f"event {event.type} of {len(raw)} bytes: the limit is {MAX_EVENT_BYTES}; use the store")
        message_id = event.id if replay_nonce == 0 else f"{event.id}.{replay_nonce}"
        repeated = await self.publish_raw(subject(event.data), raw, {"Nats-Msg-Id": message_id})
        metrics.PUBLISHED.labels("repeated" if repeated else "stored").inc()

    async def publish_raw(self, on: str, raw: bytes, headers: dict[str, str]) -> bool:
        """Store bytes on a subject; return whether the bus knew the message's id already."""
        last: Exception | None = None
        for pause in PUBLISH_PAUSES_S:
            try:
                # A copy: the client modifies the headers.
                return bool((await self._js.publish(on, raw, timeout=CALL_S, headers=dict(headers))).duplicate)
            except AWAY as error:
                last = error
            if on.lower() in self._denied:
                metrics.PUBLISHED.labels("failed").inc()
                raise Fatal(f"bus: {self._service!r} may not publish on {on!r}: check its permissions") from last
            await asyncio.sleep(pause)
        metrics.PUBLISHED.labels("failed").inc()
        raise Transient(f"bus: publish on {on!r} not confirmed: {last}") from last

    async def fetch(self, subscription: Subscription, batch: int, timeout_s: float) -> Sequence[Delivery]:
        """Messages for a subscription; see the port. Survives the cancellation of its caller."""
        if self._client.is_closed:
            raise Fatal("bus: the connection is closed")
        fetching = asyncio.ensure_future(self._fetch(subscription, batch, timeout_s))
        try:
            return await asyncio.shield(fetching)
        except asyncio.CancelledError:
            # The server still holds the request: wait for its answer in a task and give the messages back.
            giving_back = asyncio.ensure_future(_give_back(fetching))
            self._abandoned.add(giving_back)
            giving_back.add_done_callback(self._abandoned.discard)
            raise

    async def _fetch(self, subscription: Subscription, batch: int, timeout_s: float) -> Sequence[Delivery]:
        name = subscription.name
        if not self.connected:
            # The client would queue the requests of a whole outage and send them all at its end. The server would hand
            # out far more messages than this process can handle, and no other process would get them.
            raise Transient(f"bus: fetch for {name!r} failed: not connected")
        if name not in self._pulls:
            self._pulls[name] = PullConsumer(self._client, stream_of(subscription).name, name)
        try:
            messages = await self._pulls[name].fetch(batch, timeout_s)
        except AWAY as error:
            raise Transient(f"bus: fetch for {name!r} failed: {error}") from error
        if not messages and self._pulls[name].subject.lower() in self._denied:
            raise Fatal(f"bus: {self._service!r} may not fetch for {name!r}: check its permissions")
        return [NatsDelivery(self.publish_raw, message, subscription) for message in messages]

    async def pending(self, subscription: Subscription) -> int:
        """Messages not yet acknowledged; see the port."""
        try:
            info = await self._js.consumer_info(stream_of(subscription).name, subscription.name)
        except js_errors.NotFoundError as error:
            raise ConsumerMissing(f"bus: consumer {subscription.name!r} is missing") from error
        except AWAY as error:
            raise Transient(f"bus: no information on consumer {subscription.name!r}: {error}") from error
        return (info.num_pending or 0) + (info.num_ack_pending or 0)

    async def ensure(self, subscription: Subscription) -> None:
        """Check stream and consumer against the topology; create a missing consumer."""
        stream = stream_of(subscription)
        await self._check(f"stream {stream.name}", stream_config(stream), STREAM_FIELDS)
        declared = consumer_config(subscription, [pattern(event) for event in subscription.events])
        try:
            await self._check(f"consumer {subscription.name}", declared, CONSUMER_FIELDS, stream.name)
        except ConsumerMissing:
            try:
                await self._js.add_consumer(stream.name, declared)
            except AWAY as error:
                raise Transient(f"bus: consumer {subscription.name!r} not created: {error}") from error

    async def _check(self, what: str, declared: Any, fields: tuple[str, ...], stream: str | None = None) -> None:
        try:
            if stream is None:
                real: Any = await self._js.stream_info(declared.name)
            else:
                real = await self._js.consumer_info(stream, declared.name)
        except js_errors.NotFoundError as error:
            if stream is not None:
                raise ConsumerMissing(f"bus: {what} is missing") from error
            raise Fatal(f"bus: {what} is missing: run `python -m shared.bus.provision`") from error
        except AWAY as error:
            raise Transient(f"bus: no information on {what}: {error}") from error
        if diff := differences(declared, real.config, fields):
            raise Fatal(f"bus: {what} differs from its declaration ({diff}): run `python -m shared.bus.provision`")

    async def close(self) -> None:
        """Leave the inboxes, flush, close. The server would hand further messages to an inbox that was not left."""
        self._closing = True
        await asyncio.gather(*self._abandoned)  # at most as long as one fetch
        try:
            for pull in self._pulls.values():
                await pull.close()
            if self._client.is_connected:
                await self._client.flush(timeout=2)
        except AWAY as error:
            log.warning("bus not flushed", error=str(error))
        try:
            await self._client.close()
        except AWAY as error:  # an outage: unsent answers are repeated, unsent publishes were never confirmed
            log.warning("bus closed with unsent data", error=str(error))

    def _options(self, settings: BusSettings) -> dict[str, Any]:
        options: dict[str, Any] = {
            "servers": [settings.url],
            "name": self._service,
            "inbox_prefix": f"_INBOX_{self._service}",  # permissions keep services out of each other's replies
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.5,
            "connect_timeout": 5,
            "ping_interval": PING_S,
            "max_outstanding_pings": 2,
            "error_cb": self._on_error,
            "closed_cb": self._on_closed,
            "disconnected_cb": self._on_disconnected,
            "reconnected_cb": self._on_reconnected,
        }
        if settings.credentials_file is not None:
            options["user"], options["password"] = _credentials(read_secret(settings.credentials_file))
        if settings.url.startswith("tls://"):
            options["tls"] = ssl.create_default_context(cafile=settings.ca_file)
        return options

    async def _on_error(self, error: Exception) -> None:
        denied = _DENIED.search(str(error))
        if denied:
            self._denied.add(denied[1].lower())  # the client lower-cases the server's message
            metrics.DENIED.inc()
            log.error("bus operation denied", error=str(error))
        elif not self._first_error.done():
            self._first_error.set_result(error)
        else:
            log.debug("bus error", error=str(error))

    async def _on_closed(self) -> None:
        if not self._closing:
            self.closed.set()

    async def _on_disconnected(self) -> None:
        if not self._closing:
            log.warning("bus disconnected")

    async def _on_reconnected(self) -> None:
        metrics.RECONNECTS.inc()
        log.info("bus reconnected")


async def _give_back(fetching: "asyncio.Future[Sequence[Delivery]]") -> None:
    try:
        for delivery in await fetching:
            await delivery.nak(0)
    except (Transient, Fatal) as error:  # the bus redelivers the messages after the acknowledgement timeout
        log.warning("messages not given back", error=str(error))


def _credentials(text: str) -> tuple[str, str]:
    user, separator, password = text.partition(":")
    if not separator or not user or not password or "\n" in text:
        raise Fatal("the file in ZELDA_BUS__CREDENTIALS_FILE must hold one line USER:PASSWORD")
    return user, password
