"""Bus handler of the coordinator: an event about a run wakes the reconciler for that run."""

from collections.abc import Sequence

from services.coordinator.reconcile.reconciler import Reconciler
from shared.contracts.envelope import Envelope


class Handlers:
    """Uses the run id of an event and nothing else: every decision follows from the object store."""

    def __init__(self, reconciler: Reconciler) -> None:
        self._reconciler = reconciler

    async def handle(self, event: Envelope) -> Sequence[Envelope]:
        """Reconcile the run now instead of in the next pass. The reconciler publishes what follows."""
        await self._reconciler.reconcile(event.runid)
        return []
