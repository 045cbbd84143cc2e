"""The documents of a run that a trace follows: its orders and finished epochs."""

import asyncio
from dataclasses import dataclass

from shared.contracts.base import sha256
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.ids import RunId, SegmentId
from shared.state.epochs import first_unfinished_epoch
from shared.store import keys
from shared.store.port import NotFound, Store


@dataclass(frozen=True, slots=True)
class RunDocuments:
    """Orders and records by epoch number. The newest epoch may have an order only."""

    run: RunId
    orders: list[EpochStart]
    order_digests: list[str]
    finished: list[EpochFinishedRecord]

    def segment(self, name: SegmentId) -> tuple[int, SegmentRef] | None:
        """The epoch that recorded the segment, and its reference; None if no finished epoch lists it."""
        for record in self.finished:
            for reference in record.segments:
                if reference.segment == name:
                    return record.epoch, reference
        return None

    def shaped_by(self, epoch: int) -> list[int]:
        """The epochs whose reward model was trained on the scores of `epoch`."""
        return [order.epoch for order in self.orders if order.reward_model and order.reward_model.epoch == epoch]


async def read_documents(store: Store, run: RunId) -> RunDocuments:
    """Read all orders and records of a run; NotFound if it has no epoch."""
    names = {entry.key for entry in await store.list(keys.epochs_prefix(run))}
    if keys.epoch_start(run, 0) not in names:
        raise NotFound(f"the store holds no epoch of a run named {run}")
    done = first_unfinished_epoch(run, names)
    started = done + (keys.epoch_start(run, done) in names)
    orders = await asyncio.gather(*(store.get(keys.epoch_start(run, epoch)) for epoch in range(started)))
    records = await asyncio.gather(*(store.get(keys.epoch_finished(run, epoch)) for epoch in range(done)))
    return RunDocuments(
        run,
        [EpochStart.from_bytes(one) for one in orders],
        [sha256(one) for one in orders],
        [EpochFinishedRecord.from_bytes(one) for one in records],
    )
