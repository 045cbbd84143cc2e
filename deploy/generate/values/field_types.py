"""Types of the values: the base class, constrained strings, and groups that several sections share."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Name = Annotated[str, Field(pattern=r"^$|^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$", description="Kubernetes object name")]
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")]
Url = Annotated[
    str,
    Field(
        pattern=r"^$|^https?://[^\s@]*[^\s@/]$",
        description="http(s) address without user name, blanks, or a slash at its end",
    ),
]
ServerUrl = Annotated[str, Field(pattern=r"^$|^https?://[^\s@/]+$", description="http(s) address without a path")]
Sha256 = Annotated[str, Field(pattern=r"^$|^[0-9a-f]{64}$", description="64 hexadecimal digits, or empty")]
Digest = Annotated[str, Field(pattern=r"^$|^sha256:[0-9a-f]{64}$")]
# host[:port]/path, without a scheme
IMAGE_REPOSITORY = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*$"
ImageName = Annotated[str, Field(pattern=IMAGE_REPOSITORY)]
# What registries accept: no `+`. A tag needs a digit: with `latest`, a restarted pod could change its version.
# The pattern cannot count the characters on both sides of the digit, so `maxLength` does.
Tag = Annotated[
    str,
    Field(pattern=r"^$|^([0-9]|[A-Za-z_][A-Za-z_.-]*[0-9])[A-Za-z0-9_.-]*$", max_length=128),
]
Env = Annotated[
    dict[Annotated[str, Field(pattern=r"^ZELDA_[A-Z0-9_]+$")], str],
    Field(json_schema_extra={"additionalProperties": False}),
]
Labels = dict[str, str]
ApiSwitch = Literal["auto", "on", "off"]


class Section(BaseModel):
    """A group of values. Unknown keys are refused; YAML names are camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class Amounts(Section):
    """One set of computing resources of a container."""

    cpu: Quantity = Field("100m", description="cores, for example `500m` or `2`")
    memory: Quantity = Field("256Mi", description="memory, for example `512Mi`")


class Resources(Section):
    """Requests and limits of a container."""

    requests: Amounts = Field(default_factory=Amounts, description="reserved on the node")
    limits: Amounts = Field(default_factory=Amounts, description="never exceeded")


class Toleration(Section):
    """One taint that a pod accepts."""

    key: str = Field("", description="taint key; empty with `Exists` accepts all")
    operator: Literal["Exists", "Equal"] = Field("Exists", description="how `value` is compared")
    value: str = Field("", description="taint value for `Equal`")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        "", description="empty accepts every effect"
    )


class Placement(Section):
    """Nodes on which a pod may run."""

    node_selector: Labels = Field(default_factory=dict, description="labels a node must carry")
    tolerations: list[Toleration] = Field(default_factory=list, description="taints that are accepted")


class ThirdPartyImage(Section):
    """An image that this project does not build."""

    name: ImageName = Field(description="repository with its host")
    tag: Tag = Field("", description="version; used when `digest` is empty")
    digest: Digest = Field("", description="`sha256:…`; pins the image and wins over `tag`")


FurtherPort = Annotated[
    int,
    Field(
        ge=0,
        le=65535,
        description="additional port to open besides that of the address: the pods' port, if a Service in the cluster "
        "maps to another one (MinIO: 443 to 9000); 0 for none",
    ),
]


class ConfigMapKey(Section):
    """One file in a ConfigMap."""

    name: Name = Field("", description="ConfigMap; empty means none")
    key: str = Field("ca.crt", description="key in it")


class Volume(Section):
    """A persistent volume made from a claim template."""

    size: Quantity = Field("10Gi", description="requested size")
    storage_class: Name = Field("", description="storage class; empty takes the cluster's default")


def resources(cpu: str, memory: str, cpu_limit: str, memory_limit: str) -> Resources:
    """Requests and limits in one line, for defaults."""
    return Resources(requests=Amounts(cpu=cpu, memory=memory), limits=Amounts(cpu=cpu_limit, memory=memory_limit))
