"""From an order to a product: assemble, fit, measure, pack. Blocks for seconds to minutes and loads torch."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from services.rewardmodel.domain.dataset import assemble
from services.rewardmodel.domain.gates import GateRules
from services.rewardmodel.domain.preferences import PairRules
from services.rewardmodel.orders import Order, Product
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training.fit import FitRules
from services.rewardmodel.training.problem import TrainRules
from services.rewardmodel.training.report import report
from services.rewardmodel.training.statedict import plain_state_dict
from services.rewardmodel.training.train import Task, train
from shared.game.layout import FEATURES, INDEX
from shared.rewardnet import dump, load


async def in_this_process(order: Order, interrupted: Callable[[], bool]) -> Product:
    """Fill the order in a thread: for a study or a test, which load torch anyway and train hundreds of times."""
    return await asyncio.to_thread(make, order, interrupted)


def make(order: Order, interrupted: Callable[[], bool]) -> Product:
    """Fill the order; raise Interrupted soon after `interrupted()` turned true."""
    torch.set_num_threads(order.group.threads)
    began = time.monotonic()
    task = _task(order)
    trained = train(task, _rules(order.group), interrupted)
    names = [feature.name for feature in FEATURES]
    gates = GateRules(**order.group.gates.model_dump())
    measured = report(task, trained, order.epoch, order.quorum, names, gates, interrupted)
    weights = trained.weights
    if measured.reliability is not None:
        weights = replace(weights, temperature=measured.reliability.temperature)
    return Product(
        report=measured,
        fit=trained.fit,
        validation_loss=trained.validation_loss,
        weights=dump(weights),
        state_dict=plain_state_dict(weights),
        seconds=time.monotonic() - began,
    )


def _task(order: Order) -> Task:
    data = assemble(order.ratings, order.recordings, order.folds)
    masked = [INDEX[name] for name in order.group.masked]
    previous = load(order.previous, order.observation) if order.previous is not None else None
    return Task(data, order.observation, masked, previous, order.seed)


def _rules(group: RewardModelGroup) -> TrainRules:
    return TrainRules(
        members=group.members,
        pooling=group.pooling,
        warm_start=group.warm_start,
        shuffles=group.shuffles,
        fit=FitRules(most_steps=group.steps),
        pairs=PairRules(margin=group.tie_margin, cap=group.pairs_per_segment),
    )
