"""A training run with restarts: each epoch adds to the archive, and a repeated epoch plays the same."""

import asyncio
from pathlib import Path

import pytest

from services.trainer.restarts.run_archive import RunArchive
from shared.contracts.epoch import ArchiveRef, EpochStart
from shared.contracts.learning.restarts import RestartsConfig
from shared.contracts.progress import ArchiveCoverage
from shared.store import keys
from shared.store.object_store import local_store
from tests.unit.trainer.run_fixtures import NOW, RUN, run_in
from tests.unit.trainer.trained_epochs import SMALL, forget, train

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on every start
]
CONFIG = SMALL.model_copy(update={"restarts": RestartsConfig(share=0.5)})


def ordered(epoch: int, archive: ArchiveRef | None) -> EpochStart:
    return EpochStart(run=RUN, epoch=epoch, fence=1, config=CONFIG, archive=archive, created=NOW)


def test_each_epoch_adds_to_the_archive_and_a_repeated_one_plays_the_same(tmp_path: Path) -> None:
    store = local_store(tmp_path)
    asyncio.run(run_in(store, config=CONFIG))
    first = train(store, "d1", ordered(0, None))
    assert first.archive is not None
    second = train(store, "d2", ordered(1, first.archive))
    assert second.archive is not None
    assert second.metrics["restarts/cells"] > first.metrics["restarts/cells"] > 10
    coverage = ArchiveCoverage.from_bytes(asyncio.run(store.get(keys.archive_coverage(RUN, 1))))
    assert sum(room.cells for room in coverage.rooms) == second.metrics["restarts/cells"]
    grown = second.metrics["restarts/cells"] - first.metrics["restarts/cells"]
    assert sum(room.new_cells for room in coverage.rooms) == grown
    asyncio.run(forget(store, RUN, 1))
    assert train(store, "d3", ordered(1, first.archive)).archive == second.archive
    whole = RunArchive.load(second.archive, lambda one: asyncio.run(store.get(one.key, one.digest)))
    assert any(entry.parent is not None for entry in whole.archive.entries)
