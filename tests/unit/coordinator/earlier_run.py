"""A run with real recordings: that of version 0.1.0, with two environments and six judged segments."""

import zipfile
from pathlib import Path
from typing import Final

from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.store import keys
from shared.store.port import Store

ARCHIVE: Final = Path(__file__).parents[2] / "data/run_of_2026_11_22.zip"
EARLIER: Final = RunId("demo-20261123-001156")
PLACE: Final = keys.SegmentPlace(EARLIER, 0, EpisodeId("e0000-r00-v00-0000"), SegmentId("e0000-r00-v00-0000-s000"))
ROUTE: Final = f"/runs/{EARLIER}/epochs/0/episodes/{PLACE.episode}/segments/{PLACE.segment}"


async def add_earlier_run(store: Store) -> None:
    """Put the objects of the run into the store, without its checkpoint."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in archive.namelist():
            if "/checkpoints/" not in name:
                await store.put(name, archive.read(name))
