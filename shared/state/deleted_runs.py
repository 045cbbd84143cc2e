"""Deleted runs: a mark keeps the name taken, and events that arrive later are ignored."""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from shared.contracts.envelope import Envelope
from shared.contracts.ids import RunId
from shared.errors import Permanent
from shared.store import keys
from shared.store.port import NotFound, Store

EventHandler = Callable[[Envelope], Awaitable[Sequence[Envelope]]]
log = structlog.get_logger(__name__)


class RunDeleted(Permanent):
    """A run of this name was deleted, and no other one may have the name."""

    def __init__(self, run: RunId) -> None:
        super().__init__(f"Run {run} was deleted and its name stays taken: choose another name.")


async def was_deleted(store: Store, run: RunId) -> bool:
    """Whether the run was deleted."""
    return await store.exists(keys.deleted_run(run))


def ignore_deleted_runs(store: Store, handler: EventHandler) -> EventHandler:
    """A handler that drops an event whose objects are gone with its run; without it, each would be a dead letter."""

    async def handle(event: Envelope) -> Sequence[Envelope]:
        try:
            return await handler(event)
        except NotFound as error:
            if not await was_deleted(store, event.runid):
                raise
            log.info("event of a deleted run ignored", run=event.runid, type=event.type, error=str(error))
            return []

    return handle
