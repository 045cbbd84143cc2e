"""The restarts of a run from epoch to epoch: an order pins the archive, which any driver continues."""

import zlib
from types import SimpleNamespace
from typing import Any, Final

import pytest

from services.trainer.restarts import epoch_restarts
from services.trainer.restarts.collector import CollectedState
from services.trainer.restarts.epoch_restarts import EpochRestarts
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.restarts.trajectory_player import TrajectoryPlayer
from services.trainer.state_archive.archive import PathQuality
from services.trainer.state_archive.cell import ArchiveCell
from shared.contracts.base import sha256
from shared.contracts.epoch import ArchiveRef, EpochStart, PassesRef
from shared.contracts.ids import Digest
from shared.contracts.learning.restarts import RestartsConfig
from shared.contracts.progress import ArchiveCoverage
from shared.game.observation.counters import LASTING
from tests.unit.trainer.archived_play import CONFIG, TrajectoriesInMemory
from tests.unit.trainer.run_fixtures import NOW, RUN

KEEPING: Final = CONFIG.run.model_copy(update={"restarts": RestartsConfig(share=0.5)})


class ArchivesInMemory(TrajectoriesInMemory):
    """Keeps packs; a driver that starts again reads them."""

    def save_archive(self, data: bytes, epoch: int) -> ArchiveRef:
        key = f"models/archive-{epoch}"
        self.objects[key] = data
        return ArchiveRef(key=key, digest=Digest(sha256(data)))

    def save_coverage(self, coverage: ArchiveCoverage) -> None:
        """Nothing reads it here."""

    def save_passes(self, data: bytes, epoch: int, passes: int) -> PassesRef:
        raise AssertionError("nothing is imitated")


def no_player() -> TrajectoryPlayer:
    raise AssertionError("nothing is played")


def driver(store: ArchivesInMemory) -> EpochRestarts:
    """The restarts of a driver that has just started."""
    return EpochRestarts(store, ArchiveTrajectories(store, no_player))


def order(epoch: int, archive: ArchiveRef | None) -> EpochStart:
    return EpochStart(run=RUN, epoch=epoch, fence=1, config=KEEPING, archive=archive, created=NOW)


def found(room: int, steps: int = 9) -> list[CollectedState]:
    """What an epoch found: ten cells of a room."""
    state = bytes([room])
    return [
        CollectedState(
            ArchiveCell(0, room, column, 0, (0,) * len(LASTING)),
            *(None, 7, bytes(steps), PathQuality(3, steps), b"", sha256(state), zlib.compress(state), b""),
        )
        for column in range(10)
    ]


def test_a_driver_that_starts_again_has_the_archive_of_its_order() -> None:
    store = ArchivesInMemory()
    first = driver(store)
    begun = first.finish(order(0, None), found(1), {})
    assert begun is not None
    assert driver(store).finish(order(0, None), found(1), {}) == begun, "a repeated epoch stores the same"
    later = driver(store)
    plans = [one.plan(order(1, begun), None) for one in (first, later)]
    assert plans[0] == plans[1]
    assert plans[0] is not None
    assert plans[0].known == {one.cell: one.quality for one in found(1)}
    assert len([start for start in plans[0].starts if start is not None]) == 50


def test_each_epoch_continues_the_archive_and_draws_its_own_starts() -> None:
    store = ArchivesInMemory()
    restarts, reference, starts, cells = driver(store), None, [], []
    for epoch in range(3):
        plan = restarts.plan(order(epoch, reference), None)
        assert plan is not None
        reference = restarts.finish(order(epoch, reference), found(min(epoch, 1)), {})
        cells.append(restarts.figures()["restarts/cells"])
        starts.append([None if start is None else start.name for start in plan.starts])
    assert cells == [10, 20, 20], "what an epoch found counts in its own figures"
    assert restarts.figures()["restarts/rooms"] == 2
    whole = RunArchive.load(reference, store.read)
    assert len(whole.archive) == 20
    assert starts[0] == [None] * 100
    again = restarts.plan(order(3, reference), None), restarts.plan(order(4, reference), None)
    assert all(plan is not None for plan in again)
    assert again[0] != again[1], "equal archives, but other starts"


@pytest.mark.parametrize(("view", "scores"), [("counters/v1", True), ("obs/v1", False)])
def test_only_a_reward_model_of_event_counters_scores_the_archive(
    view: str, scores: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry keeps its counters, and no observation."""
    monkeypatch.setattr(epoch_restarts, "view_of", lambda model: view)
    monkeypatch.setattr(epoch_restarts, "score_by", lambda model, conservatism: float)
    named: Any = SimpleNamespace(reward_model="named", config=KEEPING)
    assert (EpochRestarts._score_of(named, b"model") is not None) == scores
    assert EpochRestarts._score_of(named, None) is None
