"""Assembles the reward model service: the only place that chooses its adapters."""

from services.rewardmodel import telemetry
from services.rewardmodel.adapters.model_store import RewardModelStore
from services.rewardmodel.adapters.pair_labels import PairLabelReader
from services.rewardmodel.adapters.score_cache import ScoreCache
from services.rewardmodel.adapters.segment_features import SegmentFeatureLoader
from services.rewardmodel.adapters.training_process import train_in_subprocess
from services.rewardmodel.handlers import Handlers
from services.rewardmodel.score_arrivals import ScoreArrivals
from services.rewardmodel.settings import RewardModelGroup, RewardModelSettings
from services.rewardmodel.training_protocol import TrainFunction
from services.rewardmodel.training_runner import TrainingRunner
from shared.bus import topology
from shared.bus.consumer import Consumer
from shared.runtime.service import Service, ServicePorts
from shared.state.deleted_runs import ignore_deleted_runs


async def wire(settings: RewardModelSettings, ports: ServicePorts) -> Service:
    """Return the service: two consumers, and the removal of ended runs' metrics."""
    handlers = build_handlers(settings.rewardmodel, ports, train_in_subprocess)
    return Service(
        consumers=[
            Consumer(topology.REWARDMODEL_SCORES, handlers.score_ready),
            Consumer(topology.REWARDMODEL_EPOCHS, ignore_deleted_runs(ports.store, handlers.epoch_finished)),
        ],
        background=[lambda: telemetry.OF_RUNS.watch(ports.store)],
    )


def build_handlers(group: RewardModelGroup, ports: ServicePorts, train: TrainFunction) -> Handlers:
    """Build the handlers without a runtime, for studies and tests; `train` runs the trainings."""
    scores, pairs = ScoreCache(ports.store), PairLabelReader(ports.store)
    features = SegmentFeatureLoader(ports.store, group.capacity, group.view)
    should_cancel = ports.stopping.is_set
    runner = TrainingRunner(scores, pairs, features, group, train, should_cancel)
    models = RewardModelStore(ports.store)
    return Handlers(ports.store, scores, pairs, models, runner, ScoreArrivals(), group, should_cancel)
