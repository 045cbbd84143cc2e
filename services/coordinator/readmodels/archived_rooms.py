"""The rooms of a run's archive of states, as the trainer wrote them after an epoch."""

from shared.contracts.ids import RunId
from shared.contracts.progress import ArchiveCoverage, ArchivedRoom
from shared.store import keys
from shared.store.port import NotFound, Store


async def read_archived_rooms(store: Store, run: RunId, epoch: int) -> list[ArchivedRoom]:
    """The rooms after an epoch; empty if the run keeps no archive. Raises ContractError for a damaged document."""
    try:
        return ArchiveCoverage.from_bytes(await store.get(keys.archive_coverage(run, epoch))).rooms
    except NotFound:
        return []
