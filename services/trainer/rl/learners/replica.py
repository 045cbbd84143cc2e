"""A replica of the driver's learner in a Ray actor. It keeps nothing: every batch comes with networks and optimiser."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import ray
import torch
from numpy.typing import NDArray
from ray.rllib.core import DEFAULT_MODULE_ID
from torch import Tensor

from services.trainer.rl.learners.gradient_sum import GradientSum, Meeting

THREADS = 1  # of torch: other replicas use the cores beside it


@dataclass(frozen=True)
class LearnerWork:
    """One batch for the replicas: its columns, the rows of every minibatch, and the state of the driver's learner."""

    columns: Mapping[str, Tensor]
    minibatches: Sequence[NDArray[np.int64]]
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    done: float


class SharingLearner(Protocol):
    """What a replica needs of its learner: `services.trainer.rl.learner.CuriosityPPOLearner` has it."""

    module: Any
    gradients: GradientSum | None
    done: float

    def get_optimizer(self, module_id: str) -> torch.optim.Optimizer:
        """The optimiser of the networks."""
        ...

    def learn_share(self, columns: Mapping[str, Tensor], minibatches: Sequence[NDArray[np.int64]]) -> dict[str, float]:
        """Make the steps of all minibatches on this learner's rows; return its part of the mean losses."""
        ...


def learner_state(learner: SharingLearner) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What the steps of a batch start from: networks, without the table of visits, and optimiser."""
    network = learner.module[DEFAULT_MODULE_ID].unwrapped()
    weights = {name: tensor for name, tensor in network.state_dict().items() if not name.startswith("visits.")}
    return weights, learner.get_optimizer(DEFAULT_MODULE_ID).state_dict()


@ray.remote
class LearnerReplica:
    """Learner number `rank`, counted from 0, which is the driver's."""

    def __init__(self, config: Any, module_spec: Any) -> None:
        torch.set_num_threads(THREADS)
        learner = config.learner_class(config=config, module_spec=module_spec)
        learner.build()
        self._learner: SharingLearner = learner

    def connect(self, meeting: Meeting, rank: int) -> None:
        """Join the other learners; it waits for all of them."""
        self._learner.gradients = GradientSum(meeting, rank, ray.util.get_node_ip_address())

    def learn(self, work: LearnerWork) -> dict[str, float]:
        """Make the same steps as the driver's learner; return this replica's part of the mean losses."""
        learner = self._learner
        network = learner.module[DEFAULT_MODULE_ID].unwrapped()
        network.load_state_dict(work.weights, strict=False)
        learner.get_optimizer(DEFAULT_MODULE_ID).load_state_dict(dict(work.optimizer))
        learner.done = work.done
        return learner.learn_share(work.columns, work.minibatches)
