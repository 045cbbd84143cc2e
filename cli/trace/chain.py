"""The whole chain of a segment, from the rewards that it changed to its checkpoint, and that of an epoch."""

from cli.trace.link import Link, fetch
from cli.trace.model_links import model_links, order_link
from cli.trace.pair_links import segment_pair_links
from cli.trace.run_documents import RunDocuments, read_documents
from cli.trace.segment_links import play_links, score_links
from services.coordinator.domain.reasons import unshaped
from services.coordinator.readmodels.run_views import RunViewReader
from shared.contracts.ids import RunId, SegmentId
from shared.state.runs import RunRecords
from shared.store.port import NotFound, Store


async def trace_segment(store: Store, run: RunId, name: SegmentId) -> list[Link]:
    """Orders shaped by the segment's scores, their model, its pairs and scores, the votes, recording, checkpoint.

    NotFound if the run has no finished epoch that lists the segment.
    """
    documents = await read_documents(store, run)
    place = documents.segment(name)
    if place is None:
        raise NotFound(f"no finished epoch of {run} lists a segment {name}")
    epoch, reference = place
    return [
        *_rewards(documents, epoch),
        *await model_links(store, run, epoch),
        *await score_links(store, run, epoch, reference),
        *await segment_pair_links(store, run, epoch, name),
        *await play_links(store, documents, reference),
    ]


async def trace_epoch(store: Store, run: RunId, epoch: int) -> list[Link]:
    """From an epoch's checkpoint back to the votes behind its rewards, and on to the model that its play taught.

    NotFound if the run has no order of this epoch.
    """
    documents = await read_documents(store, run)
    if epoch >= len(documents.orders):
        raise NotFound(f"{run} has no epoch {epoch}")
    model = documents.orders[epoch].reward_model
    return [
        *await _checkpoint(store, documents, epoch),
        order_link(documents, epoch, await _not_shaped(store, run, epoch)),
        *(await model_links(store, run, model.epoch) if model else []),
    ]


async def _not_shaped(store: Store, run: RunId, epoch: int) -> str | None:
    """Why no reward model shaped a finished epoch."""
    view = await RunViewReader(store).read(await RunRecords(store).latest(run))
    return unshaped(view.record.config, view.epochs[: epoch + 1])


def _rewards(documents: RunDocuments, epoch: int) -> list[Link]:
    """The orders whose rewards the epoch's scores shaped."""
    shaped = documents.shaped_by(epoch)
    if not shaped:
        return [Link("reward", "not kept", facts=[f"no epoch is shaped by a model of epoch {epoch}"])]
    return [order_link(documents, one) for one in shaped]


async def _checkpoint(store: Store, documents: RunDocuments, epoch: int) -> list[Link]:
    if epoch >= len(documents.finished):
        return [Link(f"checkpoint of epoch {epoch}", "not kept", facts=["the epoch is not finished"])]
    record = documents.finished[epoch]
    found = await fetch(store, record.checkpoint_key, record.checkpoint_digest)
    fact = f"after {record.steps:,} steps of this epoch, {len(record.segments)} segments recorded"
    return [Link(f"checkpoint of epoch {epoch}", found.state, record.checkpoint_key, found.digest, [fact])]
