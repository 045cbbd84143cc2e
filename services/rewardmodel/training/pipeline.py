"""Runs a training request: builds the data set, trains, evaluates, serialises. Blocks for seconds to minutes."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from services.rewardmodel.domain.dataset import build_dataset
from services.rewardmodel.domain.gates import GateThresholds
from services.rewardmodel.domain.preferences import PairingConfig
from services.rewardmodel.settings import INPUTS, RewardModelGroup
from services.rewardmodel.training.fit import FitConfig
from services.rewardmodel.training.fit_problem import TrainingConfig
from services.rewardmodel.training.report import build_report
from services.rewardmodel.training.state_dict import serialise_state_dict
from services.rewardmodel.training.train import TrainingTask, train
from services.rewardmodel.training_protocol import TrainingRequest, TrainingResult
from shared.contracts.learning.reward_learning import LabelSource
from shared.rewardnet import WIDTHS, dump, load


async def train_in_thread(request: TrainingRequest, should_cancel: Callable[[], bool]) -> TrainingResult:
    """Train in a thread of this process: for studies and tests, which train hundreds of times and have loaded torch."""
    return await asyncio.to_thread(run_training, request, should_cancel)


def run_training(request: TrainingRequest, should_cancel: Callable[[], bool]) -> TrainingResult:
    """Train and evaluate; raise TrainingCancelled soon after `should_cancel()` returns True."""
    torch.set_num_threads(request.group.threads)
    started = time.monotonic()
    task = _task(request)
    trained = train(task, training_config(request.group, request.labels), should_cancel)
    names = list(INPUTS[request.group.view])
    thresholds = GateThresholds(**request.group.gates.model_dump())
    report = build_report(task, trained, request.epoch, request.quorum, names, thresholds, should_cancel)
    weights = trained.weights
    if report.reliability is not None:
        weights = replace(weights, temperature=report.reliability.temperature)
    return TrainingResult(
        report=report,
        fit=trained.fit,
        validation_loss=trained.validation_loss,
        weights=dump(weights),
        state_dict=serialise_state_dict(weights),
        seconds=time.monotonic() - started,
    )


def _task(request: TrainingRequest) -> TrainingTask:
    width = WIDTHS[request.observation]
    data = build_dataset(request.ratings, request.features, request.folds, width, request.compared)
    masked = [INPUTS[request.group.view].index(name) for name in request.group.hidden]
    previous = load(request.previous, request.observation) if request.previous is not None else None
    return TrainingTask(data, request.observation, masked, previous, request.seed)


def training_config(group: RewardModelGroup, labels: LabelSource) -> TrainingConfig:
    """The configuration of a training under these settings."""
    return TrainingConfig(
        members=group.members,
        labels=labels,
        pooling=group.pooling,
        warm_start=group.warm_start,
        shuffles=group.shuffles,
        fit=FitConfig(max_steps=group.steps, monotone=group.monotone_inputs),
        pairs=PairingConfig(margin=group.tie_margin, cap=group.pairs_per_segment),
    )
