"""Values of the judges and of their language models."""

from typing import Annotated, Literal

from pydantic import Field

from deploy.generate.values.field_types import (
    ConfigMapKey,
    Name,
    Placement,
    Resources,
    Section,
    Toleration,
    Url,
    resources,
)

GPU = "nvidia.com/gpu"


class JudgeRouteValues(Section):
    """One judge's endpoint when `mode` is `external`."""

    base_url: Url = Field("", description="OpenAI-compatible address ending in `/v1`")
    model: str = Field("", description="name of the model on the server")


class ExternalRoutesValues(Section):
    """Endpoints of the three judges."""

    state: JudgeRouteValues = Field(
        default_factory=JudgeRouteValues, description="judge of progress, dialog and efficiency"
    )
    puzzle: JudgeRouteValues = Field(default_factory=JudgeRouteValues, description="judge of puzzles")
    vision: JudgeRouteValues = Field(default_factory=JudgeRouteValues, description="judge of novelty; sees frames")


class ExternalJudgesValues(Section):
    """Existing OpenAI-compatible endpoints."""

    routes: ExternalRoutesValues = Field(default_factory=ExternalRoutesValues, description="one endpoint per judge")
    api_key_secret: Name = Field("", description="Secret with the entry `api-key`; empty sends none")
    ca: ConfigMapKey = Field(default_factory=ConfigMapKey, description="authority of the endpoints' certificates")
    port: int = Field(
        0,
        ge=0,
        le=65535,
        description="additional port to open besides those of the addresses: the pods' port, "
        "if a Service in the cluster maps to another one; 0 for none",
    )


class JudgingValues(Section):
    """Judges, votes and limits of requests."""

    mode: Literal["rules", "llmd", "external"] = Field(
        "rules", description="rules judge, the models under `llm`, or other endpoints"
    )
    votes: list[Annotated[int, Field(ge=1, le=11)]] = Field(
        default_factory=lambda: [3, 7, 11],
        description="number of votes; further steps apply only while votes are split",
    )
    concurrency: int = Field(
        32, ge=1, le=1000, description="limit of requests in flight per route and pod; the service adapts below it"
    )
    timeout_seconds: int = Field(120, ge=1, le=600, description="limit of one request")
    ca: ConfigMapKey = Field(
        default_factory=lambda: ConfigMapKey(name="openshift-service-ca.crt", key="service-ca.crt"),
        description="authority of the models' certificates, used with `llmd`",
    )
    token_audience: str = Field(
        "https://kubernetes.default.svc", description="audience of the projected token for `llmd`"
    )
    rules_resources: Resources = Field(
        default_factory=lambda: resources("100m", "192Mi", "1", "512Mi"), description="resources of the rules judge"
    )
    external: ExternalJudgesValues = Field(default_factory=ExternalJudgesValues, description="endpoints for `external`")


class LlmModelValues(Placement):
    """One LLMInferenceService."""

    name: Name = Field(description="object name; keep it short, because the controller derives longer names from it")
    uri: Annotated[str, Field(pattern=r"^(hf|s3|oci|pvc)://\S+$")] = Field(description="location of the weights")
    model: str = Field(description="the `model` field of requests")
    replicas: int = Field(1, ge=0, le=16, description="vLLM pods")
    gpus: int = Field(1, ge=1, le=8, description="GPUs of a pod; also the tensor parallelism")
    max_model_len: int = Field(16384, ge=2048, description="context window in tokens")
    images_per_prompt: int = Field(0, ge=0, le=64, description="most images in a prompt; 0 for text models")
    startup_minutes: int = Field(30, ge=5, le=240, description="time to load the weights before a restart")
    args: list[str] = Field(default_factory=list, description="additional vLLM arguments (a shell parses them again)")
    resources: Resources = Field(description="computing resources of a pod, without GPUs")
    node_selector: dict[str, str] = Field(
        default_factory=lambda: {"nvidia.com/gpu.present": "true"}, description="required node labels"
    )
    tolerations: list[Toleration] = Field(
        default_factory=lambda: [Toleration(key=GPU, effect="NoSchedule")], description="accepted taints"
    )


def _model(name: str, repository: str, gpus: int, size: Resources, images: int = 0) -> LlmModelValues:
    return LlmModelValues(
        name=name, uri=f"hf://{repository}", model=repository, gpus=gpus, resources=size, images_per_prompt=images
    )


class LlmModelsValues(Section):
    """The three models, one per judge."""

    state: LlmModelValues = Field(
        default_factory=lambda: _model("qwen25-7b", "Qwen/Qwen2.5-7B-Instruct", 1, resources("4", "24Gi", "8", "48Gi")),
        description="text model of the state judge",
    )
    puzzle: LlmModelValues = Field(
        default_factory=lambda: _model(
            "qwen25-32b", "Qwen/Qwen2.5-32B-Instruct", 4, resources("8", "96Gi", "16", "160Gi")
        ),
        description="text model of the puzzle judge",
    )
    vision: LlmModelValues = Field(
        default_factory=lambda: _model(
            "qwen25-vl-32b", "Qwen/Qwen2.5-VL-32B-Instruct", 4, resources("8", "96Gi", "16", "160Gi"), 8
        ),
        description="model with images of the vision judge",
    )


class LlmValues(Section):
    """Language models served by OpenShift AI (KServe LLMInferenceService, llm-d)."""

    enabled: bool = Field(False, description="create the three LLMInferenceServices and their permissions")
    auth: bool = Field(True, description="callers need a token (requires Red Hat Connectivity Link)")
    use_gateway: bool = Field(
        True, description="judges call the gateway; false calls the pods' Service without scheduler and auth"
    )
    gateway_url: Url = Field(
        "https://openshift-ai-inference-openshift-default.openshift-ingress.svc.cluster.local",
        description="address of the inference gateway inside the cluster",
    )
    priority: int = Field(
        -10, ge=-1000, le=1000, description="priority of judge requests; below 0, requests of users go first"
    )
    token_secret: Name = Field("", description="Secret with HF_TOKEN for downloads; empty for public models")
    models: LlmModelsValues = Field(default_factory=LlmModelsValues, description="one model per judge")
