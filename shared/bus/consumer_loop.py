"""The guarded consumer loop: every event of every service passes through it, so its guards exist once.

It fetches only what it can start, signals progress of long work, and answers each message exactly once. Transient
errors are retried with growing pauses; Permanent ones become dead letters. The drain order loses nothing: stop
fetching, finish or give back the work in hand, then let the caller close the connection.
It must never cancel a fetch: the server would hand the next message to a reader that no longer exists.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from shared.bus import metrics
from shared.bus.consumer import Consumer
from shared.bus.delivery_handler import DeliveryHandler
from shared.bus.outage import OutageDetector
from shared.bus.port import Bus, ConsumerMissing, Delivery
from shared.bus.topology import ACK_WAIT_S
from shared.errors import Transient, ZeldaError
from shared.process.event_wait import wait_for_event

FETCH_S: Final = 2.0  # a running fetch receives nothing after a bus restart: a longer one delays the recovery
BATCH: Final = 64  # larger pulls made the client drop messages
WATCH_S: Final = 15.0  # between checks that the consumer exists: a deleted one is silent, not an error
KEEP_ALIVE_S: Final = ACK_WAIT_S / 3
OUTAGE_S: Final = 1.0  # between checks whether the dependencies are back
PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0)  # after failing fetches

log = structlog.get_logger(__name__)


class ConsumerLoop:
    """Runs one consumer until `stop` is set. `missing` is the reason why no events can arrive, or None."""

    def __init__(
        self,
        bus: Bus,
        consumer: Consumer,
        *,
        drain_s: float = 25.0,
        fetch_s: float = FETCH_S,
        watch_s: float = WATCH_S,
        keep_alive_s: float = KEEP_ALIVE_S,
        outage: OutageDetector | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._bus, self._consumer, self._subscription = bus, consumer, consumer.subscription
        self._drain_s, self._fetch_s, self._watch_s, self._keep_alive_s = drain_s, fetch_s, watch_s, keep_alive_s
        self._outage = outage or OutageDetector()
        self._stop = asyncio.Event()
        jitter = rng or random.Random()  # noqa: S311 - no secret
        self._handler = DeliveryHandler(bus, consumer, self._outage, jitter, lambda: self._stop.is_set())
        self._work: set[asyncio.Task[None]] = set()
        self._unstarted: set[Delivery] = set()
        self._slot_free = asyncio.Event()
        self.missing: str | None = None
        self.name = self._subscription.name

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until `stop`, then drain. Raises Fatal, alone or in a group, when the process must end."""
        self._stop = stop
        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(self._watch())
                await self._consume(group, stop)
                watcher.cancel()
                await self._drain()
        finally:
            # A task cancelled before its first step never runs: its message is given back here.
            await self._give_back(self._unstarted)

    async def _consume(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        failures = 0
        while not stop.is_set():
            if self._outage.active and await self._outage.check():
                await wait_for_event(stop, OUTAGE_S)
                continue
            if not self._consumer.active() or not (free := await self._free_slots(stop)):
                await wait_for_event(stop, PAUSES_S[0])
                continue
            try:
                deliveries = await self._bus.fetch(self._subscription, min(free, BATCH), self._fetch_s)
            except ConsumerMissing as error:
                await self._restore(error)
                await wait_for_event(stop, PAUSES_S[-1 if self.missing else 0])
                continue
            except Transient as error:
                pause_s = PAUSES_S[min(failures, len(PAUSES_S) - 1)]
                failures += 1
                log.warning("fetch failed", consumer=self.name, error=str(error), retry_s=pause_s)
                await wait_for_event(stop, pause_s)
                continue
            failures = 0
            metrics.LAST_FETCH.labels(self.name).set_to_current_time()
            if stop.is_set():  # it came during the fetch: another process can start this work now
                await self._give_back(deliveries)
                return
            for delivery in deliveries:
                self._start(group, delivery)

    async def _give_back(self, deliveries: Iterable[Delivery]) -> None:
        """Return messages unhandled. Together: without an answer of the bus, each takes seconds."""
        await asyncio.gather(*(self._handler.give_back(delivery) for delivery in deliveries))

    async def _free_slots(self, stop: asyncio.Event) -> int:
        """How many events may start now, possibly none; waits for a free slot or for the stop."""
        if len(self._work) >= self._consumer.slots:
            self._slot_free.clear()
            waits = (asyncio.ensure_future(self._slot_free.wait()), asyncio.ensure_future(stop.wait()))
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        return 0 if stop.is_set() else max(0, self._consumer.slots - len(self._work))  # the slots may have shrunk

    def _start(self, group: asyncio.TaskGroup, delivery: Delivery) -> None:
        self._unstarted.add(delivery)
        task = group.create_task(self._handle(delivery))
        self._work.add(task)
        metrics.IN_FLIGHT.labels(self.name).set(len(self._work))
        task.add_done_callback(self._work_ended)

    def _work_ended(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        metrics.IN_FLIGHT.labels(self.name).set(len(self._work))
        self._slot_free.set()

    async def _handle(self, delivery: Delivery) -> None:
        self._unstarted.discard(delivery)
        with structlog.contextvars.bound_contextvars(consumer=self.name):
            async with self._signal_progress(delivery):
                await self._handler.handle(delivery)

    @asynccontextmanager
    async def _signal_progress(self, delivery: Delivery) -> AsyncIterator[None]:
        async def keep() -> None:
            while True:
                await asyncio.sleep(self._keep_alive_s)
                try:
                    await delivery.in_progress()
                except ZeldaError as error:  # the bus is away and will redeliver; the commit object decides
                    log.warning("progress signal not confirmed", error=str(error))

        keeper = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeper.cancel()

    async def _watch(self) -> None:
        while True:
            try:
                pending = await self._bus.pending(self._subscription)
                metrics.PENDING.labels(self.name).set(pending)
                if len(self._work) >= self._consumer.slots:  # no fetch until a slot is free, which may take hours
                    metrics.LAST_FETCH.labels(self.name).set_to_current_time()
                self.missing = None
            except ConsumerMissing as error:
                await self._restore(error)
            except Transient as error:
                self.missing = str(error)
            await asyncio.sleep(self._watch_s if self.missing is None else min(1.0, self._watch_s))

    async def _restore(self, reason: ConsumerMissing) -> None:
        self.missing = str(reason)
        log.error("consumer missing", consumer=self.name, error=str(reason))
        metrics.RESTORED.labels(self.name).inc()
        try:
            await self._bus.ensure(self._subscription)
            self.missing = None
        except Transient as error:
            log.warning("consumer not restored", consumer=self.name, error=str(error))

    async def _drain(self) -> None:
        """Let running work finish within the budget; cancel the rest, which gives it back."""
        if not self._work:
            return
        _, late = await asyncio.wait(set(self._work), timeout=self._drain_s)
        for task in late:
            task.cancel()
        if late:
            log.warning("work given back", consumer=self.name, events=len(late))
            await asyncio.wait(late)
