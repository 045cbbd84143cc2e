"""The documents of a run that a trace follows: its orders and finished epochs."""

import asyncio
from dataclasses import dataclass

from shared.contracts.base import sha256
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.ids import RunId, SegmentId
from shared.state.documents import parse_document, read_document
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
    ordered = [keys.epoch_start(run, epoch) for epoch in range(started)]
    orders = await asyncio.gather(*map(store.get, ordered))
    records = (read_document(store, EpochFinishedRecord, keys.epoch_finished(run, epoch)) for epoch in range(done))
    return RunDocuments(
        run,
        [parse_document(EpochStart, key, raw) for key, raw in zip(ordered, orders, strict=True)],
        [sha256(raw) for raw in orders],
        await asyncio.gather(*records),
    )
