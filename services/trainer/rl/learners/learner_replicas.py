"""The driver's side of several learners: starts the replicas and gives them each batch."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import ray
import structlog
from numpy.typing import NDArray
from ray.exceptions import GetTimeoutError, RayError
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from services.trainer.rl.learners.gradient_sum import TIMEOUT, GradientSum, Meeting
from services.trainer.rl.learners.replica import LearnerReplica, LearnerWork, SharingLearner, learner_state
from shared.errors import Fatal

PLACEMENT_S: Final = 300.0
"""Wait for the replicas' cores. With less, a cluster that is still adding a node would fail the run."""
log = structlog.get_logger(__name__)


class LearnerReplicas:
    """All learners but the driver's. Raises Fatal if the cluster has no room for them, or if one ends."""

    def __init__(self, learner: Any, learners: int) -> None:
        """`learner` is the driver's; `learners` counts it, too."""
        host = ray.util.get_node_ip_address()
        store = TCPStore(host, 0, None, True, TIMEOUT, False)
        options = {"num_cpus": 1, "scheduling_strategy": "SPREAD"}
        config, spec = learner.config, learner._module_spec
        actor: Any = LearnerReplica  # Ray's decorator hides its type
        self._actors = [actor.options(**options).remote(config, spec) for _ in range(1, learners)]
        self._wait_for_cores(learners)
        meeting = Meeting(host, store.port, learners)
        joining = [actor.connect.remote(meeting, rank) for rank, actor in enumerate(self._actors, start=1)]
        self.gradients = GradientSum(meeting, 0, host, store)
        ray.get(joining)
        self._learning: list[Any] = []
        log.info("learners started", learners=learners)

    def _wait_for_cores(self, learners: int) -> None:
        try:
            ray.get([actor.ready.remote() for actor in self._actors], timeout=PLACEMENT_S)
        except GetTimeoutError as error:
            self.close()
            raise Fatal(
                f"learners: {learners} need a core each beside the env runners, and Ray found none for "
                f"{PLACEMENT_S:.0f} s: lower learners or env_runners, or add workers"
            ) from error

    def begin(
        self, learner: SharingLearner, columns: Mapping[str, Tensor], minibatches: Sequence[NDArray[np.int64]]
    ) -> None:
        """Let the replicas make the steps of this batch. The driver's learner must make them as well."""
        weights, optimizer = learner_state(learner)
        work = ray.put(LearnerWork(columns, minibatches, weights, optimizer, learner.done))
        self._learning = [actor.learn.remote(work) for actor in self._actors]

    def finish(self) -> list[dict[str, float]]:
        """Wait for the replicas; each one's part of the mean losses."""
        try:
            found: list[dict[str, float]] = ray.get(self._learning)
        except RayError as error:
            raise Fatal(f"a learner process failed: {error}") from error
        return found

    def weights(self) -> list[dict[str, Tensor]]:
        """The networks of every replica after the last batch."""
        found: list[dict[str, Tensor]] = ray.get([actor.weights.remote() for actor in self._actors])
        return found

    def close(self) -> None:
        """End the replicas."""
        for actor in self._actors:
            ray.kill(actor)
