"""Puts the reward model service together: the one place where its parts are chosen."""

from services.rewardmodel.adapters.child import in_a_child
from services.rewardmodel.adapters.recordings import Recordings
from services.rewardmodel.adapters.scores import Scores
from services.rewardmodel.adapters.shelf import Shelf
from services.rewardmodel.domain.debounce import Rhythm
from services.rewardmodel.handlers import Handlers
from services.rewardmodel.orders import Training
from services.rewardmodel.settings import RewardModelGroup, RewardModelSettings
from services.rewardmodel.streaming import Streaming
from services.rewardmodel.workbench import Workbench
from shared.bus import topology
from shared.bus.consumer import Consumer
from shared.runtime.service import Ports, Service


async def wire(settings: RewardModelSettings, ports: Ports) -> Service:
    """Two consumers, and the retraining in between as a background job."""
    handlers, streaming = assemble(settings.rewardmodel, ports, in_a_child)
    return Service(
        consumers=[
            Consumer(topology.REWARDMODEL_SCORES, handlers.score_ready),
            Consumer(topology.REWARDMODEL_EPOCHS, handlers.epoch_finished),
        ],
        background=[streaming.run] if settings.rewardmodel.streaming else [],
    )


def assemble(group: RewardModelGroup, ports: Ports, training: Training) -> tuple[Handlers, Streaming]:
    """The same parts without a runtime around them; `training` says where models are trained."""
    scores = Scores(ports.store)
    recordings = Recordings(ports.store, group.capacity)
    workbench = Workbench(scores, recordings, group, training, ports.stopping.is_set)
    streaming = Streaming(ports.store, workbench, Rhythm(quiet_s=group.quiet_s, rest_s=group.rest_s))
    shelf = Shelf(ports.store)
    return Handlers(ports.store, scores, shelf, workbench, streaming, group, ports.stopping.is_set), streaming
