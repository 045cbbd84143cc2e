"""A run whose policy sees pictures (pixels/v1) instead of features."""

from pathlib import Path

import numpy as np
import pytest
import torch

from services.trainer.driver.session_factory import create_evaluation, create_session
from services.trainer.rl.curiosity.novelty_view import NoveltyView
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.module import build_network
from services.trainer.rl.networks.pixel_observation import as_network_input, inference_chunks
from services.trainer.rl.session_config import TrainingSessionConfig
from services.trainer.settings import DriverGroup
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.run import RunConfig
from shared.game.observation.layout import SIZE
from shared.game.recording.segment import read_segment
from shared.rewardnet import dump, zero_weights

SHAPE = (6, 72, 80)
RUN = RunId("pictures")
CONFIG = RunConfig(
    world="garden",
    observation="pixels/v1",
    batch_size=128,
    epoch_steps=600,
    env_runners=0,
    envs_per_runner=2,
    ppo=PpoConfig(warm_up_steps=128),
)


def test_bytes_are_scaled_once_on_their_way_into_a_network() -> None:
    net = build_network(SHAPE, (8,), 3)
    picture = torch.randint(0, 256, (2, *SHAPE), dtype=torch.uint8)

    assert torch.equal(net(picture), net(picture.float() / 255))


def test_curiosity_sees_the_newest_picture_of_a_stack() -> None:
    view, stack = NoveltyView(SHAPE, "novelty/v1"), np.zeros((5, *SHAPE), np.uint8)
    stack[:, 0] = 7

    assert view.of(stack).shape == (5, *view.shape) == (5, 1, 72, 80)
    assert (view.of(stack) == 7).all()


def test_pictures_stay_bytes_and_large_batches_are_cut() -> None:
    assert as_network_input([np.zeros(SHAPE, np.uint8)]).dtype == np.uint8
    assert as_network_input([np.zeros(SIZE)]).dtype == np.float32
    parts = inference_chunks(torch.zeros((1000, *SHAPE), dtype=torch.uint8))
    assert len(parts) > 1
    assert sum(map(len, parts)) == 1000


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")  # Ray's own, on every start
def test_a_run_learns_from_pictures_and_is_shaped_and_recorded_by_features(tmp_path: Path) -> None:
    model = dump(zero_weights(5))
    config = TrainingSessionConfig(RUN, CONFIG, CONFIG.ppo, StoreSettings(url=f"file://{tmp_path}"))
    session = create_session(config, DriverGroup())
    session.begin(lambda numbers: EpochPlan(1, reward_model=model, reward_model_digest="0" * 64), 1)
    before = {name: weights.clone() for name, weights in session.network.state_dict().items()}
    for _ in range(5):
        session.iterate()
    session.collect(final=True)
    moved = {name for name, weights in session.network.state_dict().items() if not torch.equal(weights, before[name])}
    assert {name.split(".")[0] for name in moved} == {"pi", "critic", "visits"}
    assert all(np.isfinite(value) for value in session.figures.values())
    for reference in session.segments.values():
        assert read_segment((tmp_path / reference.key).read_bytes()).observations.shape[1] == SIZE
    assert session.segments

    evaluation = create_evaluation(config)
    assert evaluation.run(session.network.pi, 1, limit=20)["rooms_mean"] >= 1
    evaluation.close()
    session.close()
