"""Imitation: judged play becomes rows, the policy learns from them, and a repeated epoch learns the same."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.driver_store import DriverStore
from services.trainer.imitation.demonstrations import Demonstrations, read_demonstrations
from services.trainer.imitation.loss import ImitationLoss
from services.trainer.imitation.weights import LIMIT, return_weights, score_weights
from services.trainer.other_ways.fights import WonFight
from services.trainer.other_ways.leg_passes import LegPass, write_passes
from services.trainer.restarts.trajectory_player import TrajectoryRows
from services.trainer.rl.learner import CuriosityPPOLearner
from shared.config.settings import StoreSettings
from shared.contracts.base import sha256
from shared.contracts.epoch import (
    ArchiveDemonstrations,
    BackwardStage,
    EpochStart,
    ImitatedSegment,
    Imitation,
    PassesRef,
    SegmentRef,
    TrajectoryRef,
)
from shared.contracts.ids import Digest, SegmentId
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.learning.restarts import ImitationConfig
from shared.contracts.run import SamplingConfig
from shared.errors import DigestMismatch
from shared.game.observation.layout import SIZE
from shared.game.recording.segment import POLICY, Members, pack_state, read_segment, write_segment
from shared.store.open import open_store
from tests.unit.judge.segment_factory import manifest
from tests.unit.trainer.run_fixtures import NOW, RUN, run_in
from tests.unit.trainer.test_learner_equals_stock import episodes, learner
from tests.unit.trainer.trained_epochs import SMALL, forget, train

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, on import and build
CONFIG = SMALL.model_copy(
    update={
        "segment_steps": 100,
        "sampling": SamplingConfig(share=1.0),
        "imitation": ImitationConfig(mode="awr", top_k=4),
    }
)


def test_self_imitation_weighs_only_what_is_better_than_the_mean() -> None:
    found = score_weights(ImitationConfig(mode="sil"), [0.9, 0.6, 0.5, 0.2], 0.5)
    np.testing.assert_allclose(found, [0.4, 0.1, 0.0, 0.0], atol=1e-12)


def test_advantage_weighting_is_exponential_and_limited() -> None:
    found = score_weights(ImitationConfig(mode="awr", beta=0.1), [1.0, 0.6, 0.5, 0.4], 0.5)
    np.testing.assert_allclose(found, [LIMIT, np.e, 1.0, 1 / np.e])


def test_trajectories_weigh_by_their_returns_in_any_unit() -> None:
    config = ImitationConfig(mode="sil", source="archive")
    np.testing.assert_allclose(return_weights(config, [30.0, 20.0, 10.0]), [0.5, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(return_weights(config, [0.3, 0.2, 0.1]), [0.5, 0.0, 0.0], atol=1e-12)
    assert not return_weights(config, [4.0, 4.0]).any(), "nothing stands out"
    np.testing.assert_allclose(return_weights(config.model_copy(update={"mode": "awr"}), [4.0, 4.0]), [1.0, 1.0])


def test_the_policy_learns_what_is_demonstrated_and_draws_by_chance() -> None:
    ours = learner(CuriosityPPOLearner, PpoConfig(learning_rate=1e-2), lean=True)
    network = ours.module[DEFAULT_MODULE_ID].unwrapped()
    states = np.random.default_rng(0).uniform(-1, 1, (3, 128)).astype(np.float32)
    shown = Demonstrations(states, np.array([5, 2, 7]), np.array([0.5, 0.5, 0.0]))
    ours.imitation = ImitationLoss(shown, coefficient=10.0)

    def chance() -> list[float]:
        with torch.no_grad():
            logits = torch.log_softmax(network.pi(torch.from_numpy(states)), -1)
        return [float(logits[row, action].exp()) for row, action in enumerate(shown.actions)]

    before = chance()
    batch = ours.builder(rl_module=ours.module, episodes=episodes())[DEFAULT_MODULE_ID]
    for _ in range(30):
        ours._update({DEFAULT_MODULE_ID: batch})
    after = chance()
    assert min(after[:2]) > 0.9 > max(before[:2])
    assert after[2] < 0.9, "a row without a chance is never drawn"
    figures = ours.drain_metrics()
    assert 0 < figures["imitation_loss"] < np.log(8)


def test_a_minibatch_imitates_a_quarter_as_many_rows_as_it_has() -> None:
    drawn: list[int] = []

    class Counting(ImitationLoss):
        def __call__(self, policy: torch.nn.Module, rows: int) -> torch.Tensor:
            drawn.append(rows)
            return super().__call__(policy, rows)

    ours = learner(CuriosityPPOLearner, PpoConfig(), lean=True)
    shown = Demonstrations(np.zeros((2, 128), np.float32), np.array([0, 1]), np.array([0.5, 0.5]))
    ours.imitation = Counting(shown, coefficient=1.0)
    batch = ours.builder(rl_module=ours.module, episodes=episodes())[DEFAULT_MODULE_ID]
    for size in (40, 8, 1):
        ours._update({DEFAULT_MODULE_ID: {name: column[:size] for name, column in batch.items()}})
    assert drawn == [10, 2, 1]


class NoTrajectories:
    def rows(self, references: Sequence[TrajectoryRef]) -> list[TrajectoryRows]:
        raise AssertionError(f"the order names no trajectories, but {len(references)} are played")

    def won_fights(self, reference: TrajectoryRef) -> list[WonFight]:
        raise AssertionError(f"the order names no trajectory, but the fights of {reference.key} are played")


def test_a_draw_beyond_the_last_chance_takes_the_last_row() -> None:
    """Chances are rounded: their sum may be less than 1."""
    states = np.zeros((2, 128), np.float32)
    loss = ImitationLoss(Demonstrations(states, np.array([0, 1]), np.array([0.2, 0.2])), coefficient=1.0)
    policy = torch.nn.Linear(128, 8)
    assert torch.isfinite(loss(policy, 1_000))


def recorded(name: str, actors: list[int] | None = None) -> bytes:
    """A segment of three steps; the first feature of a state counts the steps before it."""
    seen = np.zeros((4, SIZE), np.float32)
    seen[:, 0] = np.arange(4)
    content = Members(
        lines=["{}"] * 3,
        observations=seen,
        actions=np.array([5, 6, 7], np.uint8),
        prefix=np.zeros(0, np.uint8),
        packed_start=pack_state(b"start"),
        frames={},
        actors=None if actors is None else np.array(actors, np.uint8),
    )
    return write_segment(manifest(name, steps=3, key_frames=[]), content)


def test_judged_play_shows_what_was_seen_before_each_own_action() -> None:
    config = CONFIG.model_copy(update={"observation": "obs/v1"})
    objects = {"plain": recorded("plain"), "helped": recorded("helped", [POLICY, POLICY + 1, POLICY])}
    scored = [
        ImitatedSegment(segment=SegmentId(name), key=name, digest=Digest(sha256(raw)), score=score)
        for (name, raw), score in zip(objects.items(), (0.6, 0.5), strict=True)
    ]
    pinned = Imitation(baseline=0.5, segments=scored)
    order = EpochStart(run=RUN, epoch=1, fence=1, config=config, imitation=pinned, created=NOW)
    rows = read_demonstrations(order, lambda one: objects[one.key], NoTrajectories())
    assert rows is not None
    assert rows.observations[:, 0].tolist() == [0, 1, 2, 0, 2], "what a planner did is left out"
    assert rows.actions.tolist() == [5, 6, 7, 5, 7]
    assert rows.chances[0] / rows.chances[3] == pytest.approx(np.e), "a lead of one temperature"


class OneTrajectory:
    """A demonstration without fights; the first feature of its states is 8."""

    def rows(self, references: Sequence[TrajectoryRef]) -> list[TrajectoryRows]:
        return [TrajectoryRows(np.full((20, SIZE), 8, np.float32), np.zeros(20, np.int64), 0.0) for _ in references]

    def won_fights(self, reference: TrajectoryRef) -> list[WonFight]:
        return []


def test_judged_play_and_the_archive_are_each_half_of_what_is_imitated() -> None:
    """The demonstration and the policy's own passes of its legs share the archive's half."""
    passed = write_passes([LegPass(0, np.full((4, SIZE), 9, np.float32), np.arange(4))])
    objects = {"judged": recorded("judged"), "passes": passed}
    digests = {name: Digest(sha256(raw)) for name, raw in objects.items()}
    best = ImitatedSegment(segment=SegmentId("judged"), key="judged", digest=digests["judged"], score=0.9)
    shown = TrajectoryRef(entry=1, steps=20, key="trajectory", digest=Digest("0" * 64))
    order = EpochStart(
        run=RUN,
        epoch=1,
        fence=1,
        config=CONFIG.model_copy(update={"observation": "obs/v1"}),
        imitation=Imitation(baseline=0.5, segments=[best]),
        demonstrations=ArchiveDemonstrations(
            imitated=[shown],
            backward=BackwardStage(trajectory=shown, left=[0]),
            passes=[PassesRef(passes=1, key="passes", digest=digests["passes"])],
        ),
        created=NOW,
    )
    rows = read_demonstrations(order, lambda one: objects[one.key], OneTrajectory())
    assert rows is not None
    seen = rows.observations[:, 0]
    chances = [rows.chances[part].sum() for part in (seen < 8, seen == 8, seen == 9)]
    assert chances == pytest.approx([0.5, 0.25, 0.25])


def judged(segments: list[SegmentRef]) -> Imitation:
    """The segments with made-up scores, the first one best."""
    best = [
        ImitatedSegment(segment=one.segment, key=one.key, digest=one.digest, score=0.8 - number / 10)
        for number, one in enumerate(segments[:4])
    ]
    return Imitation(baseline=0.5, segments=best)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.timeout(240)
def test_a_repeated_epoch_learns_the_same_from_recorded_play(tmp_path: Path) -> None:
    settings = StoreSettings(url=f"file://{tmp_path}")
    store = open_store(settings)
    asyncio.run(run_in(store, config=CONFIG))
    first = train(store, "d1", EpochStart(run=RUN, epoch=0, fence=1, config=CONFIG, created=NOW), settings)
    assert "learner/imitation_loss" not in first.metrics
    order = EpochStart(run=RUN, epoch=1, fence=1, config=CONFIG, imitation=judged(first.segments), created=NOW)

    rows = read_demonstrations(order, lambda one: asyncio.run(store.get(one.key, one.digest)), NoTrajectories())
    assert rows is not None
    best = read_segment(asyncio.run(store.get(first.segments[0].key)))
    assert rows.observations.shape == (len(rows.actions), 148)
    np.testing.assert_array_equal(rows.actions[: len(best.actions)], best.actions)
    assert rows.chances.sum() == pytest.approx(1)

    second = train(store, "d2", order, settings)
    assert 0 < second.metrics["learner/imitation_loss"] < 3, "near that of a uniform policy, log 8"
    asyncio.run(forget(store, RUN, 1))
    again = train(store, "d3", order, settings)
    same = {name: value for name, value in second.metrics.items() if name.startswith("learner/")}
    assert same == {name: value for name, value in again.metrics.items() if name.startswith("learner/")}

    asyncio.run(store.put(first.segments[0].key, b"damaged"))
    with pytest.raises(DigestMismatch, match=first.segments[0].segment):
        DriverStore(BlockingStore(store), RUN, "d4").read(judged(first.segments).segments[0])
