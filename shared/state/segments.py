"""Lists the recorded segments of a run."""

from shared.contracts.ids import RunId
from shared.store import keys
from shared.store.port import ObjectEntry, Store


async def list_segments(store: Store, run: RunId, epoch: int | None = None) -> dict[ObjectEntry, keys.SegmentPlace]:
    """The archives of a run, or of one epoch, in the order of their keys. Foreign objects are ignored."""
    entries = await store.list(keys.segments_prefix(run, epoch))
    return {entry: place for entry in entries if (place := keys.segment_place(entry.key))}
