"""Values of Ray, and of Kueue, which admits Ray's pods."""

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
    """The Ray head: it runs the driver and no environment."""

    resources: Resources = Field(
        default_factory=lambda: resources("2", "6Gi", "4", "8Gi"), description="computing resources"
    )


class RayWorkersValues(Placement):
    """The Ray workers: they run the environments."""

    min: int = Field(3, ge=0, le=200, description="fewest pods; equal to `max` for a fixed size, best under Kueue")
    max: int = Field(3, ge=1, le=200, description="most pods")
    resources: Resources = Field(
        default_factory=lambda: resources("4", "6Gi", "4", "8Gi"), description="computing resources of a pod"
    )


class GcsFaultToleranceValues(Section):
    """Keeps the cluster alive when its head restarts. Without it, training resumes from its checkpoint."""

    enabled: bool = Field(False, description="keep the head's state in Redis")
    redis_address: str = Field("", description="`host:6379`; in `networkPolicies.externalCidr`")
    secret_name: Name = Field("", description="Secret with the entry `password`; empty for none")


class RayJobValues(Section):
    """A RayJob that runs once, on its own cluster."""

    enabled: bool = Field(False, description="create the RayJob")
    run: Name = Field("", description="run of the job")
    env: Env = Field(default_factory=dict, description="further settings")


class EpochJobValues(RayJobValues):
    """Trains the next epoch of a run without judges; an existing run continues from its last checkpoint."""

    set: list[Annotated[str, Field(pattern=r"^[a-z_.]+=[A-Za-z0-9:._/-]+$")]] = Field(
        default_factory=list, description="fields of a new run, `name=value`"
    )


class EvaluationJobValues(RayJobValues):
    """Judges the segments of an epoch that have no score."""

    epoch: int = Field(0, ge=0, description="epoch whose segments are judged")


class RayJobsValues(Section):
    """Single jobs outside of the ring."""

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
    jobs: RayJobsValues = Field(default_factory=RayJobsValues, description="RayJobs outside of the ring")


class KueueAdminValues(Section):
    """Cluster-wide objects that an administrator creates once."""

    enabled: bool = Field(False, description="create ResourceFlavor and ClusterQueue")
    # Kueue never admits a workload above the quota. The default holds Ray's pods of every profile and one job of each
    # kind. It excludes the models' GPUs, because models do not wait in a queue.
    cpu: Quantity = Field("72", description="cores of all Ray pods together, single jobs included")
    memory: Quantity = Field("128Gi", description="memory of all Ray pods together")
    namespaces: list[Name] = Field(
        default_factory=list, description="namespaces that share the quota; empty: only the release's"
    )
    node_labels: Labels = Field(default_factory=dict, description="labels of the training nodes")
    tolerations: list[Toleration] = Field(default_factory=list, description="taints of those nodes")


class KueueValues(Section):
    """Admission and quota of Ray's pods."""

    local_queue: Name = Field("zelda", description="LocalQueue of the Ray objects; the chart creates it")
    cluster_queue: Name = Field("zelda", description="ClusterQueue behind it")
    admin: KueueAdminValues = Field(default_factory=KueueAdminValues, description="cluster-wide objects")
