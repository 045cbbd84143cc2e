"""The measured work of `bench/reward_model.py`: synthetic segments, two fits, the report and the forward pass."""

import time
import timeit
from collections.abc import Iterator
from itertools import cycle

import numpy as np
import torch

from services.rewardmodel.domain.dataset import STORED_STEPS, SegmentDataset
from services.rewardmodel.domain.gates import GateThresholds
from services.rewardmodel.domain.preferences import RatingArrays
from services.rewardmodel.training.fit_problem import TrainingConfig
from services.rewardmodel.training.report import build_report
from services.rewardmodel.training.train import TrainingTask, train
from services.trainer.domain.shaping import ConservativePotential
from shared.rewardnet import Floats, RewardNet, RewardWeights

FEATURES = [f"feature_{number}" for number in range(128)]


def data(segments: int, seed: int = 0) -> SegmentDataset:
    """Segments that wander about a place each; their score is a noisy non-linear function of where they are."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-1, 1, (segments, 1, 128)).astype(np.float32)
    walk = rng.normal(0, 0.03, (segments, STORED_STEPS, 128)).astype(np.float32).cumsum(axis=1)
    states = np.clip(centre + walk, -1, 1)
    liked = np.tanh(2 * states[..., :8].sum(-1)) + states[..., 8] * states[..., 9]
    episode = np.arange(segments) // 4
    return SegmentDataset(
        states=states,
        rated=RatingArrays(
            value=np.clip(0.5 + liked.mean(1) / 4 + rng.normal(0, 0.03, segments), 0, 1),
            standard_error=np.full(segments, 0.03),
            agreement=np.full(segments, 0.7),
        ),
        fold=rng.integers(0, 5, episode.max() + 1)[episode],
        epoch=np.zeros(segments, np.int64),
        episode=episode,
        first_step=np.zeros(segments),
        steps=np.full(segments, 300.0),
        milestones=np.zeros(segments),
    )


def inference(weights: RewardWeights) -> dict[str, float]:
    """Microseconds a step of the ensemble's forward pass, and of Phi with its conservative mean, by batch size."""
    rng = np.random.default_rng(0)
    net, found = RewardNet(weights), {}
    phi = ConservativePotential(net)
    for rows in (1, 8, 16, 64):
        batches = cycle(rng.uniform(-1, 1, (2, rows, 128)).astype(np.float32))  # Phi remembers what it saw last
        out = np.empty((weights.members, rows), np.float32)

        def of_net(batches: Iterator[Floats] = batches, out: Floats = out) -> Floats:
            return net.forward(next(batches), out)

        def of_phi(batches: Iterator[Floats] = batches) -> Floats:
            return phi(next(batches))

        for name, call in (("net", of_net), ("phi", of_phi)):
            seconds = min(timeit.repeat(call, number=1_000, repeat=9)) / 1_000
            found[f"{name}_{rows}"] = round(seconds * 1e6 / rows, 2)
    return found


def measure(segments: int) -> dict[str, object]:
    """Train on so many segments, report, and time the forward pass."""
    torch.set_num_threads(1)
    config = TrainingConfig()
    task = TrainingTask(data(segments), "obs/v1")
    began, began_cpu = timeit.default_timer(), time.process_time()
    trained = train(task, config, lambda: False)
    train_s, train_cpu_s = timeit.default_timer() - began, time.process_time() - began_cpu
    began = time.process_time()
    measured = build_report(task, trained, 0, True, FEATURES, GateThresholds(), lambda: False)
    return {
        "segments": segments,
        "members": config.members,
        "pairs": measured.pairs_train,
        "pairs_per_member": [block.pairs for block in trained.blocks if block is not None],
        "train_s": round(train_s, 2),
        "train_cpu_s": round(train_cpu_s, 2),
        "report_cpu_s": round(time.process_time() - began, 2),
        "accuracy": measured.accuracy.confident,
        "baselines": measured.baselines,
        "ece": measured.reliability.ece if measured.reliability else None,
        "inference_us": inference(trained.weights),
    }
