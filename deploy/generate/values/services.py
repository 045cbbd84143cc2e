"""Values of the five services: size, placement, scaling. `env` configures the work of a service."""

from typing import Literal

from pydantic import Field

from deploy.generate.values.field_types import Env, Placement, Resources, Section, resources


class ServiceValues(Placement):
    """One service."""

    replicas: int = Field(1, ge=0, le=50, description="pods; several pods get a disruption budget")
    resources: Resources = Field(description="computing resources of the container")
    env: Env = Field(
        default_factory=dict, description="additional settings, `ZELDA_…: text`; unknown names stop the service"
    )
    grace_seconds: int = Field(
        45,
        ge=10,
        le=600,
        description="time until a pod is killed after SIGTERM; work may take all but the last 15 s of it, or half "
        "of it below 30",
    )


class AutoscalingValues(Section):
    """Number of judge pods."""

    mode: Literal["none", "cpu", "keda"] = Field(
        "none", description="`cpu`: HorizontalPodAutoscaler; `keda`: queue length"
    )
    min: int = Field(1, ge=0, le=50, description="fewest pods (0 only with `keda`)")
    max: int = Field(8, ge=1, le=200, description="most pods")
    cpu_percent: int = Field(70, ge=10, le=100, description="target of `cpu`: mean CPU use")
    lag: int = Field(8, ge=1, description="target of `keda`: waiting events per pod")


class JudgeValues(ServiceValues):
    """The judge workers."""

    autoscaling: AutoscalingValues = Field(default_factory=AutoscalingValues, description="number of pods by load")


class TrainerValues(ServiceValues):
    """The trainer service and the place of its driver."""

    replicas: int = Field(1, ge=0, le=1, description="1, or 0 to pause; two would start two drivers per epoch")
    backend: Literal["local", "ray"] = Field("local", description="driver in the trainer's pod, or as a Ray job")


def _service(replicas: int, size: Resources, grace: int = 45) -> ServiceValues:
    return ServiceValues(replicas=replicas, resources=size, grace_seconds=grace)


class ServicesValues(Section):
    """The five services."""

    coordinator: ServiceValues = Field(
        default_factory=lambda: _service(2, resources("100m", "256Mi", "1", "512Mi")),
        description="runs, REST API and live page; replicas share a lease, one is active",
    )
    trainer: TrainerValues = Field(
        default_factory=lambda: TrainerValues(
            resources=resources("2", "3Gi", "4", "6Gi"), grace_seconds=150, replicas=1
        ),
        description="trains one epoch at a time",
    )
    judge: JudgeValues = Field(
        default_factory=lambda: JudgeValues(resources=resources("250m", "256Mi", "1", "512Mi")),
        description="queries the language models",
    )
    rewardmodel: ServiceValues = Field(
        default_factory=lambda: _service(1, resources("500m", "1Gi", "2", "2Gi"), 60),
        description="trains the reward model",
    )
    exporter: ServiceValues = Field(
        default_factory=lambda: _service(1, resources("250m", "384Mi", "1", "1Gi")),
        description="exports frames and videos",
    )
