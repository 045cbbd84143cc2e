"""Puts the reward model service together: the one place where its parts are chosen."""

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
    """Two consumers, and the retraining in between as a background job."""
    handlers, streaming = build_components(settings.rewardmodel, ports, train_in_subprocess)
    return Service(
        consumers=[
            Consumer(topology.REWARDMODEL_SCORES, handlers.score_ready),
            Consumer(topology.REWARDMODEL_EPOCHS, handlers.epoch_finished),
        ],
        background=[streaming.run] if settings.rewardmodel.streaming else [],
    )


def build_components(
    group: RewardModelGroup, ports: ServicePorts, training: TrainFunction
) -> tuple[Handlers, InterimTrainer]:
    """The same parts without a runtime around them; `training` says where models are trained."""
    scores = ScoreCache(ports.store)
    recordings = SegmentFeatureLoader(ports.store, group.capacity)
    runner = TrainingRunner(scores, recordings, group, training, ports.stopping.is_set)
    streaming = InterimTrainer(ports.store, runner, DebounceConfig(quiet_s=group.quiet_s, rest_s=group.rest_s))
    models = RewardModelStore(ports.store)
    return Handlers(ports.store, scores, models, runner, streaming, group, ports.stopping.is_set), streaming
