"""Segments on which the reward model's members disagree are those that a judge's word would teach it most about."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from services.trainer.domain.ensemble_disagreement import EnsembleDisagreement
from services.trainer.env.config import EnvConfig
from services.trainer.env.vector import ZeldaVectorEnv
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import RunnerRecorder
from shared.config.settings import StoreSettings
from shared.contracts.archive import read_manifest
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, SamplingConfig
from shared.rewardnet import RewardNet, input_statistics, random_weights, standardise

STATES = np.random.default_rng(0).uniform(-1, 1, (300, 128)).astype(np.float32)


def net() -> RewardNet:
    mean, scale = input_statistics(STATES)
    return RewardNet(standardise(replace(random_weights(5, 3), input_mean=mean, input_scale=scale), STATES))


def test_disagreement_is_the_mean_deviation_of_the_members() -> None:
    model = net()
    assert EnsembleDisagreement(model)(STATES) == np.float32(model.forward(STATES[::10]).std(axis=0).mean())
    assert EnsembleDisagreement(model)(STATES) > 0.1


def test_equal_members_do_not_disagree() -> None:
    one = random_weights(1, 3)
    assert EnsembleDisagreement(RewardNet(one))(STATES) == 0


def test_a_segment_of_high_disagreement_is_recorded_with_that_reason(tmp_path: Path) -> None:
    run = RunConfig(world="garden", epoch_steps=9_000, episode_length=300, segment_steps=30, batch_size=64)
    sampling = SamplingConfig(share=0.2, budget=60)
    recording = RecordingConfig(
        run=RunId("walk"), epoch=1, store=StoreSettings(url=f"file://{tmp_path}"), sampling=sampling, epoch_steps=9_000
    )
    config = EnvConfig.of_run(run)
    recorder = RunnerRecorder(config, recording, EnsembleDisagreement(net()))
    env = ZeldaVectorEnv(config, recorder=recorder)
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(3_000):
        env.step(rng.integers(0, 7, 1))
    env.close()
    reasons = [read_manifest(path.read_bytes()).sampled for path in tmp_path.rglob("*.zip")]
    assert "disagreement" in reasons
