"""Values of Ray, and of Kueue, which admits Ray's pods."""

from pydantic import Field

from deploy.generate.values.field_types import (
    ApiSwitch,
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

    gpus: int = Field(
        0, ge=0, le=1, description="1: the driver's learner computes gradients on a GPU; the image needs CUDA's torch"
    )
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


class RayValues(Section):
    """The long-lived RayCluster, used when `services.trainer.backend` is `ray`."""

    version: str = Field(
        "2.60.0", pattern=r"^2\.[6-9]\d\.\d+$", description="must equal the version in the trainer image; from 2.60 on"
    )
    autoscaling: bool = Field(
        False, description="let Ray change the number of workers between `min` and `max`; not under Kueue"
    )
    head: RayHeadValues = Field(default_factory=RayHeadValues, description="the head pod")
    workers: RayWorkersValues = Field(default_factory=RayWorkersValues, description="the worker pods")
    gcs_fault_tolerance: GcsFaultToleranceValues = Field(
        default_factory=GcsFaultToleranceValues, description="survive a restart of the head"
    )
    token_secret: Name = Field(
        "", description="Secret with the entry `token`, which the trainer sends to Ray's job server; empty: none"
    )
    auth_proxy: ApiSwitch = Field(
        "auto",
        description="OpenShift AI's operator puts kube-rbac-proxy into the head; `auto`: where Routes exist",
    )


class KueueAdminValues(Section):
    """Cluster-wide objects that an administrator creates once."""

    enabled: bool = Field(False, description="create ResourceFlavor and ClusterQueue")
    # Kueue never admits a workload above the quota. The default holds Ray's pods of every profile and one job of each
    # kind. The models' GPUs do not count, because models do not wait in a queue.
    cpu: Quantity = Field("72", description="cores of all Ray pods together, single jobs included")
    memory: Quantity = Field("128Gi", description="memory of all Ray pods together")
    gpus: int = Field(0, ge=0, le=64, description="GPUs of all Ray heads together; `ray.head.gpus` needs them")
    namespaces: list[Name] = Field(
        default_factory=list, description="namespaces that share the quota; empty: only the release's"
    )
    node_labels: Labels = Field(default_factory=dict, description="labels of the training nodes")
    tolerations: list[Toleration] = Field(default_factory=list, description="taints of those nodes")


class KueueValues(Section):
    """Admission and quota of Ray's pods."""

    local_queue: Name = Field(
        "", description="LocalQueue of the Ray objects; the chart creates it; empty: the release's name"
    )
    cluster_queue: Name = Field("zelda", description="ClusterQueue behind it; releases may share one")
    admin: KueueAdminValues = Field(default_factory=KueueAdminValues, description="cluster-wide objects")
