"""Values of Ray and of Kueue, which admits its pods."""

from typing import Annotated

from pydantic import Field

from deploy.generate.values.field_types import (
    Env,
    Labels,
    Name,
    Placement,
    Quantity,
    Resources,
    Section,
    Toleration,
    resources,
)


class RayHeadValues(Placement):
    """The Ray head. It runs the driver, never an environment."""

    resources: Resources = Field(
        default_factory=lambda: resources("2", "6Gi", "4", "8Gi"), description="computing resources"
    )


class RayWorkersValues(Placement):
    """The Ray workers, which play."""

    min: int = Field(3, ge=0, le=200, description="fewest pods; equal to `max` for a fixed size, best under Kueue")
    max: int = Field(3, ge=1, le=200, description="most pods")
    resources: Resources = Field(
        default_factory=lambda: resources("4", "6Gi", "4", "8Gi"), description="computing resources of a pod"
    )


class GcsFaultToleranceValues(Section):
    """Keeps the cluster alive when its head restarts. Training resumes from its checkpoint without it, too."""

    enabled: bool = Field(False, description="keep the head's state in Redis")
    redis_address: str = Field("", description="`host:6379`; in `networkPolicies.externalCidr`")
    secret_name: Name = Field("", description="Secret with the entry `password`; empty for none")


class RayJobValues(Section):
    """A RayJob that runs once, on a cluster of its own."""

    enabled: bool = Field(False, description="create the RayJob")
    run: Name = Field("", description="run it works on")
    env: Env = Field(default_factory=dict, description="further settings")


class EpochJobValues(RayJobValues):
    """The next epoch of a run, trained without judges; the same name goes on from the last checkpoint."""

    set: list[Annotated[str, Field(pattern=r"^[a-z_.]+=[A-Za-z0-9:._/-]+$")]] = Field(
        default_factory=list, description="fields of a new run, `name=value`"
    )


class EvaluationJobValues(RayJobValues):
    """One pass of the judges over the segments of an epoch that have no score yet."""

    epoch: int = Field(0, ge=0, description="epoch whose segments are judged")


class RayJobsValues(Section):
    """Single pieces of work without the ring."""

    epoch: EpochJobValues = Field(default_factory=EpochJobValues, description="train one epoch")
    evaluation: EvaluationJobValues = Field(
        default_factory=EvaluationJobValues, description="judge one epoch's segments"
    )


class RayValues(Section):
    """The long-lived RayCluster, used when `services.trainer.backend` is `ray`."""

    version: str = Field(
        "2.60.0", pattern=r"^\d+\.\d+\.\d+$", description="must equal the version in the trainer image"
    )
    autoscaling: bool = Field(
        False, description="let Ray change the number of workers between `min` and `max`; not under Kueue"
    )
    head: RayHeadValues = Field(default_factory=RayHeadValues, description="the head pod")
    workers: RayWorkersValues = Field(default_factory=RayWorkersValues, description="the worker pods")
    gcs_fault_tolerance: GcsFaultToleranceValues = Field(
        default_factory=GcsFaultToleranceValues, description="survive a restart of the head"
    )
    jobs: RayJobsValues = Field(default_factory=RayJobsValues, description="RayJobs for single pieces of work")


class KueueAdminValues(Section):
    """Cluster-wide objects that an administrator makes once."""

    enabled: bool = Field(False, description="create ResourceFlavor and ClusterQueue")
    # Kueue never admits what asks for more than the whole quota. It holds Ray's pods of every profile, with one job of
    # each kind beside them; the models' GPUs are no part of it, because the models do not wait in a queue.
    cpu: Quantity = Field("72", description="cores that Ray's pods may hold together, single jobs included")
    memory: Quantity = Field("128Gi", description="memory that they may hold")
    namespaces: list[Name] = Field(
        default_factory=list, description="namespaces that share the quota; empty: the release's alone"
    )
    node_labels: Labels = Field(default_factory=dict, description="labels of the nodes for training")
    tolerations: list[Toleration] = Field(default_factory=list, description="taints of those nodes")


class KueueValues(Section):
    """Admission and quota of Ray's pods."""

    local_queue: Name = Field("zelda", description="LocalQueue that the chart makes and labels Ray objects with")
    cluster_queue: Name = Field("zelda", description="ClusterQueue behind it")
    admin: KueueAdminValues = Field(default_factory=KueueAdminValues, description="cluster-wide objects")
