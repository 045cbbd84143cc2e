"""Values of operation: access, network policies, monitoring, hooks."""

from typing import Annotated, Literal

from pydantic import Field

from deploy.generate.values.field_types import (
    ConfigMapKey,
    FurtherPort,
    Labels,
    Name,
    Resources,
    Section,
    ServerUrl,
    ThirdPartyImage,
    Url,
    resources,
)

_OCTET = r"(25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = rf"{_OCTET}(\.{_OCTET}){{3}}/(3[0-2]|[12]?\d)"
_IPV6 = r"[0-9a-f]{0,4}(:[0-9a-f]{0,4}){2,7}/(12[0-8]|1[01]\d|[1-9]?\d)"
Cidr = Annotated[str, Field(pattern=rf"^({_IPV4}|{_IPV6})$")]
Host = Annotated[str, Field(pattern=r"^$|^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")]


class OauthProxyValues(Section):
    """OpenShift's oauth-proxy in front of API and live page; the Route leads to it."""

    enabled: bool = Field(
        False, description="put the proxy in front of the coordinator (OpenShift only, not with an Ingress)"
    )
    image: ThirdPartyImage = Field(
        default_factory=lambda: ThirdPartyImage(name="quay.io/openshift/origin-oauth-proxy", tag="4.20"),
        description="the proxy",
    )
    cookie_secret: Name = Field("", description="Secret with the entry `session_secret`; empty uses the generated one")
    resources: Resources = Field(
        default_factory=lambda: resources("20m", "64Mi", "200m", "128Mi"), description="computing resources"
    )


class ExposeValues(Section):
    """Access to API and live page from outside."""

    kind: Literal["none", "route", "ingress"] = Field("none", description="`none` means access by port-forward")
    host: Host = Field("", description="host name without scheme; empty lets the Route choose")
    ingress_class: Name = Field("", description="ingress class; empty takes the default")
    tls_secret: Name = Field("", description="Secret with the certificate of the Ingress")
    annotations: Labels = Field(default_factory=dict, description="further annotations")
    oauth: OauthProxyValues = Field(default_factory=OauthProxyValues, description="log-in with the cluster's accounts")


class ApiValues(Section):
    """Log-in to the REST API inside the cluster."""

    token_secret: Name = Field(
        "", description="Secret with `tokens` (lines `operator:TOKEN`, `viewer:TOKEN`); empty uses the generated one"
    )


class NetworkPoliciesValues(Section):
    """Deny all traffic, then allow each used connection."""

    enabled: bool = Field(True, description="create the policies")
    dns_namespaces: list[Name] = Field(
        default_factory=lambda: ["openshift-dns", "kube-system"], description="namespaces of the DNS pods"
    )
    ingress_labels: Labels = Field(
        default_factory=lambda: {"network.openshift.io/policy-group": "ingress"},
        description="labels of the namespace of routers and inference gateway",
    )
    monitoring_namespace: Name = Field("openshift-user-workload-monitoring", description="namespace of Prometheus")
    ray_operator_namespace: Name = Field("redhat-ods-applications", description="namespace of the KubeRay operator")
    clients: list[Name] = Field(
        default_factory=list,
        description="namespaces whose pods may reach the API; the release's own namespace allows its workbenches, "
        "which may then reach the outside",
    )
    keda_namespace: Name = Field("openshift-keda", description="namespace of KEDA, which reads queue lengths")
    external_cidr: Cidr = Field(
        "0.0.0.0/0",
        description="network of external bus, store, Redis, endpoints, collector, API server and (`expose.oauth`) "
        "OAuth server; narrow it in production; `::/0` in an IPv6-only cluster",
    )
    model_source_cidr: Cidr = Field(
        "0.0.0.0/0",
        description="network from which models load weights (port 443); Hugging Face has no fixed addresses; "
        "`::/0` in an IPv6-only cluster",
    )


class GrafanaValues(Section):
    """Import of the dashboards into Grafana."""

    instance_labels: Labels = Field(
        default_factory=lambda: {"dashboards": "grafana"},
        description="labels of the Grafana object, of any namespace, that shows the dashboards; the operator refuses "
        "another value later",
    )
    folder: str = Field("Zelda RLAIF", description="folder in Grafana")


class MonitoringValues(Section):
    """Metrics, alerts and dashboards. OpenShift AI already scrapes vLLM."""

    interval: str = Field("30s", pattern=r"^[0-9]+(s|m)$", description="time between scrapes")
    labels: Labels = Field(default_factory=dict, description="further labels on monitors and rules")
    runbook: str = Field(
        "docs/runbook.md", description="target of alert links: the address of this page in your repository"
    )
    dashboards: bool = Field(True, description="create the dashboards' ConfigMaps")
    grafana: GrafanaValues = Field(default_factory=GrafanaValues, description="Grafana")


class TracingValues(Section):
    """Traces: spans of events and of calls to models."""

    endpoint: Url = Field(
        "",
        description="OpenTelemetry collector for the services (OTLP over HTTP), e.g. "
        "`http://otel-collector.observability.svc:4318`; empty for none",
    )
    sample_ratio: float = Field(1.0, ge=0, le=1, description="share of traces that are sent, each of them whole")
    ca: ConfigMapKey = Field(default_factory=ConfigMapKey, description="authority of the collector's certificate")
    port: FurtherPort = 0
    models_endpoint: ServerUrl = Field(
        "",
        description="the collector for models and llm-d's router (OTLP over gRPC), e.g. "
        "`http://otel-collector.observability.svc:4317`; empty for none; from release 3.5 on",
    )


class HooksValues(Section):
    """Jobs that run around an installation."""

    provision: bool = Field(
        True, description="create streams, consumers and buckets after every installation and upgrade"
    )
    test_epoch_steps: int = Field(2000, ge=300, le=100000, description="steps of the epoch that `helm test` plays")
    test_timeout_seconds: int = Field(
        900, ge=60, le=7200, description="time limit of `helm test`, whose `--timeout` must be longer"
    )
