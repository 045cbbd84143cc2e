"""The driver's side of several learners: starts the replicas and gives them each batch.

Replicas reserve no core of Ray: they compute while the env runners wait for the new policy, on the same cores.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray
import structlog
from numpy.typing import NDArray
from ray.exceptions import RayError
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from services.trainer.rl.learners.gradient_sum import TIMEOUT, GradientSum, Meeting
from services.trainer.rl.learners.replica import LearnerReplica, LearnerWork, SharingLearner, learner_state
from shared.errors import Fatal

log = structlog.get_logger(__name__)


class LearnerReplicas:
    """All learners but the driver's. Raises Fatal if one cannot start, or ends."""

    def __init__(self, learner: Any, learners: int) -> None:
        """`learner` is the driver's; `learners` counts it, too."""
        host = ray.util.get_node_ip_address()
        store = TCPStore(host, 0, None, True, TIMEOUT, False)
        options = {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
        config, spec = learner.config, learner._module_spec
        actor: Any = LearnerReplica  # Ray's decorator hides its type
        self._actors = [actor.options(**options).remote(config, spec) for _ in range(1, learners)]
        meeting = Meeting(host, store.port, learners)
        joining = [actor.connect.remote(meeting, rank) for rank, actor in enumerate(self._actors, start=1)]
        self.gradients = GradientSum(meeting, 0, host, store)
        self._got(joining)
        self._learning: list[Any] = []
        log.info("learners started", learners=learners)

    def begin(
        self, learner: SharingLearner, columns: Mapping[str, Tensor], minibatches: Sequence[NDArray[np.int64]]
    ) -> None:
        """Let the replicas make the steps of this batch. The driver's learner must make them as well."""
        weights, optimizer = learner_state(learner)
        work = ray.put(LearnerWork(columns, minibatches, weights, optimizer, learner.done))
        self._learning = [actor.learn.remote(work) for actor in self._actors]

    def finish(self) -> list[dict[str, float]]:
        """Wait for the replicas; each one's part of the mean losses."""
        return self._got(self._learning)

    @staticmethod
    def _got(calls: list[Any]) -> list[Any]:
        try:
            found: list[Any] = ray.get(calls)
        except RayError as error:
            raise Fatal(f"a learner process failed: {error}") from error
        return found

    def close(self) -> None:
        """End the replicas."""
        for actor in self._actors:
            ray.kill(actor)
