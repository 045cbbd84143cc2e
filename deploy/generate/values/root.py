"""The whole values file."""

from typing import Any, Literal

from pydantic import Field

from deploy.generate.values.backing_services import BusValues, RomValues, SecretsValues, StoreValues
from deploy.generate.values.field_types import IMAGE_REPOSITORY, ApiSwitch, Digest, Name, Section, Tag
from deploy.generate.values.jobs import JobsValues
from deploy.generate.values.judges import JudgingValues, LlmValues
from deploy.generate.values.operations import (
    ApiValues,
    ExposeValues,
    HooksValues,
    MonitoringValues,
    NetworkPoliciesValues,
    TracingValues,
)
from deploy.generate.values.planner import PlannerValues
from deploy.generate.values.ray import KueueValues, RayValues
from deploy.generate.values.runs import RunsValues
from deploy.generate.values.services import ServicesValues


class ImageDigestValues(Section):
    """Digests of the service images."""

    coordinator: Digest = Field("", description="`sha256:…`")
    trainer: Digest = Field("", description="`sha256:…`, also of Ray's pods")
    judge: Digest = Field("", description="`sha256:…`")
    rewardmodel: Digest = Field("", description="`sha256:…`")
    exporter: Digest = Field("", description="`sha256:…`")


class ImagesValues(Section):
    """The project's images are `<registry>/zelda-rlaif-<service>`."""

    registry: str = Field("localhost", pattern=IMAGE_REPOSITORY, description="host and path, without scheme")
    tag: Tag = Field(
        "",
        description="version with a digit, without `+`, which registries refuse; empty takes the chart's appVersion",
    )
    digests: ImageDigestValues = Field(default_factory=ImageDigestValues, description="pin images; they win over `tag`")
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = Field("IfNotPresent", description="when to pull")
    pull_secrets: list[Name] = Field(default_factory=list, description="Secrets for private registries")


class PlatformValues(Section):
    """Platform versions, which decide the shape of objects."""

    odh_version: Literal["3.0", "3.3", "3.4", "3.5"] = Field("3.5", description="Open Data Hub or OpenShift AI release")
    user_id: int = Field(
        0,
        ge=0,
        description="user and volume group of all pods; 0 lets OpenShift choose; elsewhere set one, such as 10001",
    )
    priority_class: Name = Field("", description="PriorityClass of all pods, models included; empty: the cluster's")


class ApisValues(Section):
    """Optional APIs: `auto` queries the cluster; Argo CD and `helm template` need `on` or `off`."""

    route: ApiSwitch = Field("auto", description="route.openshift.io/v1")
    monitoring: ApiSwitch = Field("auto", description="monitoring.coreos.com/v1: monitors and alert rules")
    grafana: ApiSwitch = Field("auto", description="grafana.integreatly.org/v1beta1")
    keda: ApiSwitch = Field("auto", description="keda.sh/v1alpha1")
    kueue: ApiSwitch = Field("auto", description="kueue.x-k8s.io/v1beta2, or v1beta1 where it is the newest")
    ray: ApiSwitch = Field("auto", description="ray.io/v1")
    llm_inference_service: ApiSwitch = Field("auto", description="serving.kserve.io LLMInferenceService")
    inference_objective: ApiSwitch = Field("auto", description="InferenceObjective of the llm-d router")
    object_bucket_claim: ApiSwitch = Field("auto", description="objectbucket.io/v1alpha1")


class LogValues(Section):
    """Logs of the services on standard output."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="lowest severity")
    format: Literal["json", "console"] = Field(
        "json", description="`json`: one JSON object a line; `console`: lines for people"
    )


class Values(Section):
    """All values of the chart."""

    global_: dict[str, Any] = Field(
        default_factory=dict, alias="global", description="values of a chart that contains this one; not used here"
    )
    name_override: Name = Field("", description="replaces the chart's name in the label part-of")
    fullname_override: Name = Field("", description="replaces the release's name as the prefix of object names")
    images: ImagesValues = Field(default_factory=ImagesValues, description="the project's images")
    platform: PlatformValues = Field(default_factory=PlatformValues, description="platform release")
    apis: ApisValues = Field(default_factory=ApisValues, description="optional APIs")
    log: LogValues = Field(default_factory=LogValues, description="logging")
    services: ServicesValues = Field(default_factory=ServicesValues, description="the five services")
    runs: RunsValues = Field(default_factory=RunsValues, description="new runs")
    rom: RomValues = Field(default_factory=RomValues, description="the game's ROM")
    secrets: SecretsValues = Field(default_factory=SecretsValues, description="credentials")
    bus: BusValues = Field(default_factory=BusValues, description="event bus")
    store: StoreValues = Field(default_factory=StoreValues, description="object store")
    judges: JudgingValues = Field(default_factory=JudgingValues, description="judging")
    planner: PlannerValues = Field(default_factory=PlannerValues, description="planner and guidance")
    llm: LlmValues = Field(default_factory=LlmValues, description="language models on OpenShift AI")
    ray: RayValues = Field(default_factory=RayValues, description="training on Ray")
    jobs: JobsValues = Field(default_factory=JobsValues, description="single jobs outside of the ring")
    kueue: KueueValues = Field(default_factory=KueueValues, description="quota")
    api: ApiValues = Field(default_factory=ApiValues, description="access to the REST API")
    expose: ExposeValues = Field(default_factory=ExposeValues, description="access from outside")
    network_policies: NetworkPoliciesValues = Field(
        default_factory=NetworkPoliciesValues, description="network isolation"
    )
    monitoring: MonitoringValues = Field(default_factory=MonitoringValues, description="monitoring")
    tracing: TracingValues = Field(default_factory=TracingValues, description="traces")
    hooks: HooksValues = Field(default_factory=HooksValues, description="hook jobs and tests")
