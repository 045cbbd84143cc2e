"""A run that imitates its archive and begins episodes backwards: a repeated epoch learns the same bytes."""

import asyncio
import io
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.checkpoint import WEIGHTS
from services.trainer.driver.driver_store import DriverStore
from services.trainer.other_ways.leg_passes import LegPass, write_passes
from shared.contracts.epoch import BackwardStage, EpochFinishedRecord, EpochStart
from shared.contracts.learning.restarts import ImitationConfig, RestartsConfig
from shared.errors import DigestMismatch
from shared.store.object_store import local_store
from shared.store.port import Store
from tests.unit.trainer.run_fixtures import NOW, RUN, run_in
from tests.unit.trainer.trained_epochs import SMALL, forget, train

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(480),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on every start
]
CONFIG = SMALL.model_copy(
    update={
        "imitation": ImitationConfig(mode="awr", source="archive", trajectories=2),
        "restarts": RestartsConfig(share=0.9, mode="backward", stride=5, window=3),
    }
)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, EpochFinishedRecord]:
    """A store with the run's epoch 0, and its record. Each test goes on in a copy."""
    folder = tmp_path_factory.mktemp("played")
    store = local_store(folder)
    asyncio.run(run_in(store, config=CONFIG))
    return folder, train(store, "d1", EpochStart(run=RUN, epoch=0, fence=1, config=CONFIG, created=NOW))


@pytest.fixture
def store(played: tuple[Path, EpochFinishedRecord], tmp_path: Path) -> Store:
    """A store of the test's own with the run's epoch 0."""
    shutil.copytree(played[0], tmp_path, dirs_exist_ok=True)
    return local_store(tmp_path)


@pytest.fixture
def first(played: tuple[Path, EpochFinishedRecord]) -> EpochFinishedRecord:
    """The record of epoch 0."""
    return played[1]


def following(before: EpochFinishedRecord, *, arrived: bool = False) -> EpochStart:
    """The order of the epoch after this one, with a stage on a trajectory: so short play achieves no goal by itself."""
    assert before.demonstrations is not None
    one = before.demonstrations.imitated[0]
    stage = BackwardStage(trajectory=one, left=[0 if arrived else one.steps])
    chosen = before.demonstrations.model_copy(update={"backward": stage})
    return EpochStart(
        run=RUN,
        epoch=before.epoch + 1,
        fence=1,
        config=CONFIG,
        archive=before.archive,
        demonstrations=chosen,
        created=NOW,
    )


def test_a_repeated_epoch_learns_the_same_bytes_from_the_archive(store: Store, first: EpochFinishedRecord) -> None:
    assert "learner/imitation_loss" not in first.metrics
    assert first.demonstrations is not None
    assert 1 <= len(first.demonstrations.imitated) <= 2

    second = train(store, "d2", following(first))
    weights = stored_weights(store, second)
    assert 0 < second.metrics["learner/imitation_loss"] < 3, "near that of a uniform policy, log 8"
    assert second.metrics["restarts/backward_steps"] == first.demonstrations.imitated[0].steps
    assert "goal_mean" in second.metrics, "episodes from the true start say how far the goal still is"
    assert second.demonstrations is not None
    assert second.demonstrations.backward is not None
    asyncio.run(forget(store, RUN, 1))
    again = train(store, "d3", following(first))
    assert learnt(again) == learnt(second)
    assert stored_weights(store, again) == weights
    assert stages(again) == stages(second)
    assert (again.archive, again.demonstrations) == (second.archive, second.demonstrations)

    damaged = first.demonstrations.imitated[0]
    asyncio.run(store.put(damaged.key, b"damaged"))
    with pytest.raises(DigestMismatch, match=damaged.key):
        DriverStore(BlockingStore(store), RUN, "d4").read(damaged)


def test_an_epoch_imitates_the_policy_s_own_passes_and_keeps_them(store: Store, first: EpochFinishedRecord) -> None:
    shown = LegPass(0, np.zeros((20, 148), np.float32), np.full(20, 3))
    passes = DriverStore(BlockingStore(store), RUN, "d1").save_passes(write_passes([shown]), 0, 1)
    plain = following(first, arrived=True)
    assert plain.demonstrations is not None
    order = plain.model_copy(update={"demonstrations": plain.demonstrations.model_copy(update={"passes": [passes]})})

    without = stored_weights(store, train(store, "d2", plain))
    asyncio.run(forget(store, RUN, 1))
    second = train(store, "d3", order)
    weights = stored_weights(store, second)
    assert weights != without
    assert second.demonstrations is not None
    assert second.demonstrations.passes[0] == passes
    asyncio.run(forget(store, RUN, 1))
    again = train(store, "d4", order)
    assert (stored_weights(store, again), again.demonstrations) == (weights, second.demonstrations)

    asyncio.run(store.put(passes.key, b"damaged"))
    with pytest.raises(DigestMismatch, match=passes.key):
        DriverStore(BlockingStore(store), RUN, "d5").read(passes)


def stages(record: EpochFinishedRecord) -> dict[str, float]:
    return {name: value for name, value in record.metrics.items() if name.startswith(("restarts/", "goal"))}


def stored_weights(store: Store, record: EpochFinishedRecord) -> bytes:
    """The bytes of the weights in the epoch's checkpoint; beside them it has times, which differ."""
    with zipfile.ZipFile(io.BytesIO(asyncio.run(store.get(record.checkpoint_key)))) as checkpoint:
        return checkpoint.read(WEIGHTS)


def learnt(record: EpochFinishedRecord) -> dict[str, float]:
    return {name: value for name, value in record.metrics.items() if name.startswith("learner/")}
