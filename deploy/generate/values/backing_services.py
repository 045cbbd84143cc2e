"""Values of the services' dependencies: bus, object store, ROM, secrets."""

from typing import Annotated, Literal

from pydantic import Field

from deploy.generate.values.field_types import (
    ConfigMapKey,
    FurtherPort,
    Name,
    Resources,
    Section,
    Sha256,
    ThirdPartyImage,
    Url,
    Volume,
    resources,
)


class BusExporterValues(Section):
    """The sidecar that translates NATS's figures for Prometheus."""

    enabled: bool = Field(True, description="run the sidecar and scrape it")
    image: ThirdPartyImage = Field(
        default_factory=lambda: ThirdPartyImage(name="docker.io/natsio/prometheus-nats-exporter", tag="0.17.3"),
        description="prometheus-nats-exporter",
    )
    resources: Resources = Field(
        default_factory=lambda: resources("20m", "32Mi", "200m", "64Mi"), description="computing resources"
    )


class EmbeddedBusValues(Section):
    """The NATS server that the chart runs itself."""

    image: ThirdPartyImage = Field(
        default_factory=lambda: ThirdPartyImage(name="docker.io/library/nats", tag="2.15.1"), description="NATS server"
    )
    replicas: Literal[1, 3] = Field(1, description="1, or 3 for a cluster that survives the loss of a node")
    volume: Volume = Field(default_factory=Volume, description="stream storage, one volume a pod")
    exporter: BusExporterValues = Field(default_factory=BusExporterValues, description="metrics of the server")
    sync_always: bool = Field(
        True, description="fsync every message (`sync_interval: always`); switch off only for trials"
    )
    resources: Resources = Field(
        default_factory=lambda: resources("100m", "256Mi", "1", "1Gi"), description="computing resources"
    )


class BusTlsValues(Section):
    """Encryption between services and bus."""

    enabled: bool = Field(False, description="speak TLS with the bus")
    secret_name: Name = Field("", description="Secret with tls.crt and tls.key of the embedded server")
    ca: ConfigMapKey = Field(default_factory=ConfigMapKey, description="authority that signed the server's certificate")


class BusValues(Section):
    """NATS with JetStream."""

    mode: Literal["embedded", "external"] = Field("embedded", description="run a server, or use an existing one")
    url: Annotated[str, Field(pattern=r"^$|^(nats|tls)://[^\s@]+$")] = Field(
        "", description="address of an external server, `nats://host:4222`"
    )
    account: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")] = Field(
        "ZELDA", description="NATS account of the services"
    )
    stream_replicas: Literal[1, 3, 5] = Field(1, description="copies of each stream on an external cluster")
    monitor_address: str = Field("", description="`host:8222` of an external server, read by KEDA")
    secret_name: Name = Field(
        "",
        description="Secret with the bus credentials of all services; empty uses the generated one",
    )
    tls: BusTlsValues = Field(default_factory=BusTlsValues, description="encryption")
    embedded: EmbeddedBusValues = Field(default_factory=EmbeddedBusValues, description="the server that the chart runs")


class EmbeddedStoreValues(Section):
    """The S3 server for development that the chart runs itself (SeaweedFS, one pod)."""

    image: ThirdPartyImage = Field(
        default_factory=lambda: ThirdPartyImage(name="docker.io/chrislusf/seaweedfs", tag="4.48"),
        description="SeaweedFS, whose `weed mini` speaks S3 with conditional writes",
    )
    volume: Volume = Field(default_factory=lambda: Volume(size="20Gi"), description="object storage")
    resources: Resources = Field(
        default_factory=lambda: resources("250m", "512Mi", "1", "1Gi"), description="computing resources"
    )


class StoreValues(Section):
    """S3-compatible object store with the two buckets `<prefix>-episodes` and `<prefix>-models`."""

    mode: Literal["embedded", "external", "bucketclaim"] = Field(
        "embedded", description="run a server, use an existing one, or claim a bucket from OpenShift Data Foundation"
    )
    prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{1,40}$")] = Field(
        "zelda", description="prefix of both bucket names"
    )
    endpoint: Url = Field("", description="address of an external server")
    port: FurtherPort = 0
    region: str = Field("us-east-1", description="region name sent with every request")
    secret_name: Name = Field("", description="Secret with the key pair; empty uses the generated one")
    access_key: str = Field("AWS_ACCESS_KEY_ID", description="entry of that Secret with the access key")
    secret_key: str = Field("AWS_SECRET_ACCESS_KEY", description="entry of that Secret with the secret key")
    ca: ConfigMapKey = Field(
        default_factory=ConfigMapKey,
        description="authority that signed the server's certificate; `bucketclaim` defaults to OpenShift's",
    )
    keep_segments_days: Annotated[int, Field(ge=1, le=36500)] | None = Field(
        None, description="days after which segments expire; null keeps them without limit; not with `bucketclaim`"
    )
    claim_storage_class: Name = Field("openshift-storage.noobaa.io", description="storage class of the bucket claims")
    embedded: EmbeddedStoreValues = Field(
        default_factory=EmbeddedStoreValues, description="the server that the chart runs"
    )


FilePath = Annotated[str, Field(pattern=r"^$|^[A-Za-z0-9][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)*$")]


class RomStartValues(Section):
    """The saved state from which runs of the ROM start: the agent cannot pass the title screen."""

    name: Name = Field("", description="Secret or claim with the state; default is the ROM's")
    path: FilePath = Field("", description="entry, file or object key of the state, from the ROM's source; empty: none")


class RomValues(Section):
    """The source of a game's ROM. It is never part of an image; without a ROM, runs play Bramble."""

    source: Literal["none", "secret", "pvc", "bucket"] = Field("none", description="`none` plays Bramble")
    name: Name = Field("", description="Secret, or PersistentVolumeClaim")
    path: FilePath = Field("", description="entry of the Secret, file in the claim, or object key in the models bucket")
    sha256: Sha256 = Field("", description="checksum; with another file the pod does not start")
    start: RomStartValues = Field(default_factory=RomStartValues, description="where runs begin")


class SecretsValues(Section):
    """Credentials that the chart can create."""

    generate: bool = Field(
        False,
        description="a hook job creates missing bus and store credentials (development) and keeps existing ones",
    )
