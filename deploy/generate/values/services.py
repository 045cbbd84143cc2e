"""Values of the five services: size, place, scaling. What a service computes is configured by its environment."""

from typing import Literal

from pydantic import Field

from deploy.generate.values.field_types import Env, Placement, Resources, Section, resources


class ServiceValues(Placement):
    """One service."""

    replicas: int = Field(1, ge=0, le=50, description="pods; a disruption budget is made when there are several")
    resources: Resources = Field(description="computing resources of the container")
    env: Env = Field(
        default_factory=dict, description="further settings, `ZELDA_…: text`; unknown names stop the service"
    )
    grace_seconds: int = Field(45, ge=10, le=600, description="time to finish work after SIGTERM")


class AutoscalingValues(Section):
    """How many judge pods run."""

    mode: Literal["none", "cpu", "keda"] = Field(
        "none", description="`cpu`: HorizontalPodAutoscaler; `keda`: queue length"
    )
    min: int = Field(1, ge=0, le=50, description="fewest pods (0 only with `keda`)")
    max: int = Field(8, ge=1, le=200, description="most pods")
    cpu_percent: int = Field(70, ge=10, le=100, description="mean CPU use that `cpu` aims at")
    lag: int = Field(8, ge=1, description="waiting events per pod that `keda` aims at")


class JudgeValues(ServiceValues):
    """The judge workers."""

    autoscaling: AutoscalingValues = Field(default_factory=AutoscalingValues, description="number of pods by load")


class TrainerValues(ServiceValues):
    """The trainer service and where its driver runs."""

    replicas: int = Field(1, ge=0, le=1, description="1, or 0 to rest; two would start two drivers for every epoch")
    backend: Literal["local", "ray"] = Field("local", description="driver in the trainer's own pod, or as a Ray job")


def _service(replicas: int, size: Resources, grace: int = 45) -> ServiceValues:
    return ServiceValues(replicas=replicas, resources=size, grace_seconds=grace)


class ServicesValues(Section):
    """The five services."""

    coordinator: ServiceValues = Field(
        default_factory=lambda: _service(2, resources("100m", "256Mi", "1", "512Mi")),
        description="runs, REST API and HUD; replicas share a lease, one is active",
    )
    trainer: TrainerValues = Field(
        default_factory=lambda: TrainerValues(
            resources=resources("2", "3Gi", "4", "6Gi"), grace_seconds=150, replicas=1
        ),
        description="one epoch at a time",
    )
    judge: JudgeValues = Field(
        default_factory=lambda: JudgeValues(resources=resources("250m", "256Mi", "1", "512Mi")),
        description="asks the language models",
    )
    rewardmodel: ServiceValues = Field(
        default_factory=lambda: _service(1, resources("500m", "1Gi", "2", "2Gi"), 60),
        description="trains the reward model",
    )
    exporter: ServiceValues = Field(
        default_factory=lambda: _service(1, resources("250m", "384Mi", "1", "1Gi")),
        description="frames and videos for people",
    )
