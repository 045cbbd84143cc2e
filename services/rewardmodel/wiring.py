"""Assembles the reward model service: the only place that chooses its adapters."""

from services.rewardmodel.adapters.model_store import RewardModelStore
from services.rewardmodel.adapters.score_cache import ScoreCache
from services.rewardmodel.adapters.segment_features import SegmentFeatureLoader
from services.rewardmodel.adapters.training_process import train_in_subprocess
from services.rewardmodel.domain.debounce import DebounceConfig
from services.rewardmodel.handlers import Handlers
from services.rewardmodel.interim_trainer import InterimTrainer
from services.rewardmodel.settings import RewardModelGroup, RewardModelSettings
from services.rewardmodel.training_protocol import TrainFunction
from services.rewardmodel.training_runner import TrainingRunner
from shared.bus import topology
from shared.bus.consumer import Consumer
from shared.runtime.service import Service, ServicePorts


async def wire(settings: RewardModelSettings, ports: ServicePorts) -> Service:
    """Return the service: two consumers, and interim training as a background job."""
    handlers, interim_trainer = build_components(settings.rewardmodel, ports, train_in_subprocess)
    return Service(
        consumers=[
            Consumer(topology.REWARDMODEL_SCORES, handlers.score_ready),
            Consumer(topology.REWARDMODEL_EPOCHS, handlers.epoch_finished),
        ],
        background=[interim_trainer.run] if settings.rewardmodel.streaming else [],
    )


def build_components(
    group: RewardModelGroup, ports: ServicePorts, train: TrainFunction
) -> tuple[Handlers, InterimTrainer]:
    """Build the components without a runtime, for studies and tests; `train` runs the trainings."""
    scores = ScoreCache(ports.store)
    features = SegmentFeatureLoader(ports.store, group.capacity, group.view)
    should_cancel = ports.stopping.is_set
    runner = TrainingRunner(scores, features, group, train, should_cancel)
    config = DebounceConfig(quiet_s=group.quiet_s, min_interval_s=group.rest_s)
    interim_trainer = InterimTrainer(ports.store, runner, config)
    models = RewardModelStore(ports.store)
    return Handlers(ports.store, scores, models, runner, interim_trainer, group, should_cancel), interim_trainer
