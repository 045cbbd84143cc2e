"""The whole values file."""

from typing import Literal

from pydantic import Field

from deploy.generate.values.data import Bus, Rom, Secrets, Store
from deploy.generate.values.judges import Judges, Llm
from deploy.generate.values.kinds import Api as ApiSwitch
from deploy.generate.values.kinds import Digest, Name, Section, Tag
from deploy.generate.values.operations import Api, Expose, Hooks, Monitoring, NetworkPolicies
from deploy.generate.values.ray import Kueue, Ray
from deploy.generate.values.services import Services


class ServiceDigests(Section):
    """Digests of the service images."""

    coordinator: Digest = Field("", description="`sha256:…`")
    trainer: Digest = Field("", description="`sha256:…`, also of Ray's pods")
    judge: Digest = Field("", description="`sha256:…`")
    rewardmodel: Digest = Field("", description="`sha256:…`")
    exporter: Digest = Field("", description="`sha256:…`")


class Images(Section):
    """The project's images are `<registry>/zelda-rlaif-<service>`."""

    registry: str = Field("localhost", pattern=r"^[a-z0-9][a-z0-9._:/-]*[a-z0-9]$", description="host and path")
    tag: Tag = Field("", description="version; empty takes the chart's appVersion")
    digests: ServiceDigests = Field(default_factory=ServiceDigests, description="pin images; they win over `tag`")
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = Field("IfNotPresent", description="when to pull")
    pull_secrets: list[Name] = Field(default_factory=list, description="Secrets for private registries")


class Platform(Section):
    """Versions that decide the shape of objects."""

    odh_version: Literal["3.0", "3.3", "3.4", "3.5"] = Field("3.5", description="Open Data Hub or OpenShift AI release")
    user_id: int = Field(
        0, ge=0, description="user and volume group of all pods; 0 leaves it to OpenShift, elsewhere take e.g. 10001"
    )


class Apis(Section):
    """Optional APIs: `auto` asks the cluster, `on` and `off` decide (needed under Argo CD and `helm template`)."""

    route: ApiSwitch = Field("auto", description="route.openshift.io/v1")
    monitoring: ApiSwitch = Field("auto", description="monitoring.coreos.com/v1: monitors and alert rules")
    grafana: ApiSwitch = Field("auto", description="grafana.integreatly.org/v1beta1")
    keda: ApiSwitch = Field("auto", description="keda.sh/v1alpha1")
    kueue: ApiSwitch = Field("auto", description="kueue.x-k8s.io/v1beta2")
    ray: ApiSwitch = Field("auto", description="ray.io/v1")
    llm_inference_service: ApiSwitch = Field("auto", description="serving.kserve.io LLMInferenceService")
    inference_objective: ApiSwitch = Field("auto", description="InferenceObjective of the llm-d router")
    object_bucket_claim: ApiSwitch = Field("auto", description="objectbucket.io/v1alpha1")


class Log(Section):
    """What services write to standard output."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="least severity")
    format: Literal["json", "console"] = Field("json", description="one JSON object a line, or text")


class Values(Section):
    """All values of the chart."""

    name_override: Name = Field("", description="replaces the chart's name in labels; fixed once installed")
    fullname_override: Name = Field("", description="replaces the release's name as the prefix of object names")
    images: Images = Field(default_factory=Images, description="the project's images")
    platform: Platform = Field(default_factory=Platform, description="platform release")
    apis: Apis = Field(default_factory=Apis, description="optional APIs")
    log: Log = Field(default_factory=Log, description="logging")
    services: Services = Field(default_factory=Services, description="the five services")
    rom: Rom = Field(default_factory=Rom, description="the game's ROM")
    secrets: Secrets = Field(default_factory=Secrets, description="credentials")
    bus: Bus = Field(default_factory=Bus, description="event bus")
    store: Store = Field(default_factory=Store, description="object store")
    judges: Judges = Field(default_factory=Judges, description="judging")
    llm: Llm = Field(default_factory=Llm, description="language models on OpenShift AI")
    ray: Ray = Field(default_factory=Ray, description="training on Ray")
    kueue: Kueue = Field(default_factory=Kueue, description="quota")
    api: Api = Field(default_factory=Api, description="access to the REST API")
    expose: Expose = Field(default_factory=Expose, description="access from outside")
    network_policies: NetworkPolicies = Field(default_factory=NetworkPolicies, description="network isolation")
    monitoring: Monitoring = Field(default_factory=Monitoring, description="monitoring")
    hooks: Hooks = Field(default_factory=Hooks, description="hook jobs and tests")
