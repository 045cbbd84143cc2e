"""What the trainer does when it hears an event: make sure that a driver works on the run. It trains nothing itself."""

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

REFUSED = metrics.counter("trainer_stale_fences_total", "events refused because a newer coordinator has spoken")


class Handlers:
    """Handlers of the one subscription of this service."""

    def __init__(self, store: Store, fleet: DriverSupervisor) -> None:
        self._store = store
        self._fleet = fleet

    async def run_event(self, event: Envelope) -> Sequence[Envelope]:
        """rm.ready: an epoch was ordered. run.changed: the run's driver reads the state itself; just watch over it."""
        member = self._fleet.take_up(event.runid)
        if event.fence < member.fence:
            REFUSED.inc()
            log.warning("stale fence refused", fence=event.fence, known=member.fence)
            return []
        member.fence = event.fence
        if isinstance(event.data, RmReady):
            await self._check_order(event.data)
        return []

    async def _check_order(self, data: RmReady) -> None:
        """An order must be what its event says; otherwise it is a dead letter, not an epoch."""
        order = EpochStart.from_bytes(await self._store.get(data.key, data.digest))
        if (order.run, order.epoch) != (data.run, data.epoch):
            raise Permanent(f"order {data.key} is for {order.run} epoch {order.epoch}, not what its event announces")
        log.info("epoch ordered", epoch=order.epoch, fence=order.fence)
