"""A run with `restarts.explore` begins with an exploration: its best path is the first pack of the run's archive."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.first_exploration import FirstExploration
from services.trainer.driver.heartbeat import HeartbeatThread
from services.trainer.exploration.exploration import Exploration
from services.trainer.restarts.epoch_restarts import EpochRestarts
from services.trainer.restarts.explored_path import ExploredPath, ExploredPaths
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.restarts.trajectory_player import TrajectoryPlayer
from services.trainer.rl.session_config import TrainingSessionConfig
from services.trainer.shortening.leg_search import LegSearch
from shared.contracts.epoch import EpochStart
from shared.contracts.learning.restarts import RestartsConfig
from shared.contracts.run import RunConfig
from shared.errors import ContractError
from shared.store import keys
from shared.store.object_store import local_store
from tests.unit.trainer.run_fixtures import NOW, RUN
from tests.unit.trainer.trained_epochs import SMALL

pytestmark = pytest.mark.filterwarnings("ignore")
STEPS = 1_500
HOUR_S = 3_600
BACKWARD = RestartsConfig(share=0.5, mode="backward", explore=STEPS)
CONFIG = SMALL.model_copy(update={"restarts": BACKWARD, "frame_skip": 4})


class Driven:
    """What a driver has when its first order comes. `store` outlives it."""

    def __init__(self, store: Path, paths: ExploredPaths | None = None) -> None:
        training = TrainingSessionConfig(RUN, CONFIG)
        self.driver_store = DriverStore(BlockingStore(local_store(store)), RUN, "d1")
        self.heartbeat = HeartbeatThread(self.driver_store, None)
        self.trajectories = ArchiveTrajectories(self.driver_store, lambda: TrajectoryPlayer(training.environment()))
        self.restarts = EpochRestarts(self.driver_store, self.trajectories)
        self.exploration = FirstExploration(self.driver_store, self.heartbeat, self.restarts, training, paths=paths)


def ordered(epoch: int = 0) -> EpochStart:
    return EpochStart(run=RUN, epoch=epoch, fence=1, config=CONFIG, created=NOW)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def completed(folder: Path) -> EpochStart:
    found = Driven(folder).exploration.complete(ordered())
    assert found is not None
    return found


def test_the_first_epoch_learns_from_what_was_explored(completed: EpochStart, folder: Path) -> None:
    driven = Driven(folder)
    archive = RunArchive.load(completed.archive, driven.driver_store.read)
    assert len(archive.archive.rooms()) > 1
    assert completed.demonstrations is not None
    stage = completed.demonstrations.backward
    assert stage is not None
    assert sum(stage.left) == stage.trajectory.steps, "no leg is mastered yet"
    (rows,) = driven.trajectories.rows([stage.trajectory])
    assert len(rows.actions) == stage.trajectory.steps, "the path replays in an environment of the run"
    driven.trajectories.close()
    plan = driven.restarts.plan(completed, None)
    assert plan is not None
    assert {None, "trajectory-"} == {start and start.name[:11] for start in plan.starts}


def test_another_driver_reads_what_was_explored(completed: EpochStart, folder: Path) -> None:
    driven = Driven(folder)
    assert driven.exploration.complete(ordered()) == completed
    assert driven.driver_store.read_exploration() is None, "its database is not needed any more"
    assert driven.exploration.complete(ordered(1)) == ordered(1), "later epochs follow their own orders"


def test_a_stopped_exploration_goes_on_elsewhere_and_finds_the_same(completed: EpochStart, tmp_path: Path) -> None:
    stopped = Driven(tmp_path)
    update = stopped.heartbeat.update

    def stop_after_a_round(**changes: object) -> None:
        update(**changes)
        if "steps_per_s" in changes:
            stopped.heartbeat.request_exit("stop")

    stopped.heartbeat.update = stop_after_a_round  # type: ignore[method-assign]
    assert stopped.exploration.complete(ordered()) is None
    add_an_hour(stopped)
    assert Driven(tmp_path).exploration.complete(ordered()) == completed
    explored = Driven(tmp_path).driver_store.read_explored()
    assert explored is not None
    assert HOUR_S < explored.seconds < 2 * HOUR_S, "the time of all drivers counts"


@pytest.mark.slow
def test_a_stopped_search_of_a_leg_is_repeated_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.trainer.driver.first_exploration.SHORTENING", 1.5)
    rounds: list[LegSearch] = []
    parents, stopped = LegSearch._parents, Driven(tmp_path / "stopped")

    def count(search: LegSearch) -> list[Any]:
        rounds.append(search)
        if rounds.count(search) == 3:
            stopped.heartbeat.request_exit("signal")
        return parents(search)

    with monkeypatch.context() as counting:
        counting.setattr(LegSearch, "_parents", count)
        assert stopped.exploration.complete(ordered()) is None
        assert rounds.count(rounds[-1]) == 3, "the third round of a search is the last"
        undisturbed = Driven(tmp_path / "undisturbed").exploration.complete(ordered())
    assert max(rounds.count(search) for search in rounds) > 3, "undisturbed it takes more"
    assert undisturbed is not None
    assert Driven(tmp_path / "stopped").exploration.complete(ordered()) == undisturbed


def add_an_hour(driven: Driven) -> None:
    """Let the exploration have taken an hour longer so far."""
    stored = driven.driver_store.read_exploration()
    assert stored is not None
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.deserialize(stored)
    later = f"json_set(value, '$.wall_s', json_extract(value, '$.wall_s') + {HOUR_S})"
    database.execute(f"update facts set value = {later} where name = 'progress'")
    driven.driver_store.save_exploration(database.serialize())
    database.close()


def test_a_damaged_database_of_an_exploration_is_explored_again(completed: EpochStart, tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.driver_store.store.put(keys.exploration(RUN, ended=False), b"damaged")
    assert driven.exploration.complete(ordered()) == completed


class PathsInMemory:
    """Explored paths, as a study's folder keeps them."""

    def __init__(self) -> None:
        self.kept: list[ExploredPath] = []

    def find(self, exploration: Mapping[str, Any]) -> ExploredPath | None:
        return next((one for one in self.kept if one.exploration == exploration), None)

    def keep(self, found: ExploredPath) -> None:
        self.kept.append(found)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> ExploredPath:
    """The path that a run found and kept for others."""
    paths = PathsInMemory()
    assert Driven(tmp_path_factory.mktemp("first"), paths).exploration.complete(ordered()) is not None
    (found,) = paths.kept
    return found


def test_a_kept_path_is_not_searched_again(
    completed: EpochStart, kept: ExploredPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explore(*_: object) -> None:
        raise AssertionError("explored again")

    monkeypatch.setattr(Exploration, "run", explore)
    paths = PathsInMemory()
    paths.keep(kept)
    driven = Driven(tmp_path, paths)
    assert driven.exploration.complete(ordered()) == completed
    explored = driven.driver_store.read_explored()
    assert explored is not None
    assert (explored.steps, explored.cells, explored.seconds) == (kept.steps, kept.cells, kept.seconds)
    assert explored.steps >= STEPS, "the steps of the exploration count, though another run made them"
    assert paths.kept == [kept]


def test_a_stop_is_seen_before_the_ways_back_are_searched(
    kept: ExploredPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*_: object) -> None:
        raise AssertionError("the archive was begun")

    paths = PathsInMemory()
    paths.keep(kept)
    driven = Driven(tmp_path, paths)
    monkeypatch.setattr(EpochRestarts, "begin", begin)
    driven.heartbeat.request_exit("stop")
    assert driven.exploration.complete(ordered()) is None
    assert driven.driver_store.read_explored() is None


def test_a_kept_path_that_achieves_less_is_refused(kept: ExploredPath, tmp_path: Path) -> None:
    paths = PathsInMemory()
    paths.keep(kept.model_copy(update={"actions": kept.actions[:10]}))
    with pytest.raises(ContractError, match=rf"explored path of 10 steps achieved {kept.achieved} when it was found"):
        Driven(tmp_path, paths).exploration.complete(ordered())
    assert Driven(tmp_path).driver_store.read_explored() is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"restarts": {"explore": 1}}, "set restarts.share or imitation.source archive"),
        ({"restarts": {"explore": 1, "share": 0.5}, "actions": "actions/v1"}, "needs actions/v2"),
    ],
)
def test_an_exploration_that_nothing_continues_is_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        RunConfig.model_validate(fields)
