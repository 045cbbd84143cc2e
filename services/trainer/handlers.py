"""Handles the trainer's events: registers runs with the supervisor and checks orders. It trains nothing."""

from collections.abc import Sequence

import structlog

from services.trainer.supervisor.driver_supervisor import DriverSupervisor
from shared.contracts.envelope import Envelope
from shared.contracts.epoch import EpochStart
from shared.contracts.events import RmReady
from shared.errors import Permanent
from shared.store.port import Store
from shared.telemetry import metrics

log = structlog.get_logger(__name__)

REFUSED = metrics.counter("trainer_stale_fences_total", "events refused because a newer coordinator holds the lease")


class Handlers:
    """Handlers of the one subscription of this service."""

    def __init__(self, store: Store, supervisor: DriverSupervisor) -> None:
        self._store = store
        self._supervisor = supervisor

    async def run_event(self, event: Envelope) -> Sequence[Envelope]:
        """Register the run of an rm.ready or run.changed event. The driver reads the run's state in the store."""
        known = self._supervisor.runs.get(event.runid)
        if known is not None and event.fence < known.fence:
            REFUSED.inc()
            log.warning("stale fence refused", fence=event.fence, known=known.fence)
            return []
        self._supervisor.register(event.runid).fence = event.fence
        if isinstance(event.data, RmReady):
            await self._check_order(event.data)
        return []

    async def _check_order(self, data: RmReady) -> None:
        """Raise Permanent unless the order matches its event: a mismatch becomes a dead letter."""
        order = EpochStart.from_bytes(await self._store.get(data.key, data.digest))
        if (order.run, order.epoch) != (data.run, data.epoch):
            raise Permanent(f"order {data.key} is for {order.run} epoch {order.epoch}, its event names another")
        log.info("epoch ordered", epoch=order.epoch, fence=order.fence)
