"""Values of the judges and of their language models."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from deploy.generate.values.field_types import (
    ConfigMapKey,
    FurtherPort,
    Name,
    Placement,
    Quantity,
    Resources,
    Section,
    ServerUrl,
    Toleration,
    Url,
    resources,
)

GPU = "nvidia.com/gpu"
Dimension = Literal["progress", "dialog", "puzzle", "novelty", "efficiency"]
ShortName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$")]
Weight = Annotated[float, Field(ge=0, le=1)]
# Odd numbers cannot tie; `uniqueItems` and the template refuse the rest of what the judge would refuse.
Votes = Annotated[list[Literal[1, 3, 5, 7, 9, 11]], Field(min_length=1, json_schema_extra={"uniqueItems": True})]


class OpenSection(Section):
    """A section with documented entries that also takes further ones of the same kind; null removes one."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"propertyNames": {"pattern": "^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$"}}
    )


class JudgeRouteValues(Section):
    """One judge's endpoint when `mode` is `external`."""

    base_url: Annotated[str, Field(pattern=r"^$|^https?://[^\s@]+[^\s@/]/v1$")] = Field(
        "", description="OpenAI-compatible address ending in `/v1`"
    )
    model: str = Field("", description="name of the model on the server")


class ExternalRoutesValues(OpenSection):
    """Endpoints of the judges; further ones may be added."""

    __pydantic_extra__: dict[str, JudgeRouteValues]

    state: JudgeRouteValues = Field(
        default_factory=JudgeRouteValues, description="judge of progress, dialog and efficiency"
    )
    puzzle: JudgeRouteValues = Field(default_factory=JudgeRouteValues, description="judge of puzzles")
    vision: JudgeRouteValues = Field(default_factory=JudgeRouteValues, description="judge of novelty; sees frames")


class ExternalJudgesValues(Section):
    """Existing OpenAI-compatible endpoints."""

    routes: ExternalRoutesValues = Field(default_factory=ExternalRoutesValues, description="one endpoint per route")
    api_key_secret: Name = Field("", description="Secret with the entry `api-key`; empty sends none")
    proxy: ServerUrl = Field(
        "",
        description="HTTP proxy on the way to all endpoints, such as the cluster's egress proxy, e.g. "
        "`http://proxy.example.com:3128`; the network policy opens its port in place of theirs; empty for none",
    )
    ca: ConfigMapKey = Field(default_factory=ConfigMapKey, description="authority of the endpoints' certificates")
    port: FurtherPort = 0


class PriceValues(Section):
    """Money per million tokens, in a currency of your choice."""

    prompt: float = Field(0, ge=0, description="tokens of the prompt")
    cached: float = Field(0, ge=0, description="tokens of the prompt that the server had in its cache")
    output: float = Field(0, ge=0, description="tokens of the answer")


class JudgeSpecValues(Section):
    """One judge: which model scores which dimensions. What is left out has the judge's default."""

    name: ShortName = Field(description="name of the judge in scores and metrics")
    route: ShortName = Field(description="entry of `llm.models` or `judges.external.routes`")
    dimensions: Annotated[list[Dimension], Field(min_length=1, json_schema_extra={"uniqueItems": True})]
    frames: int = Field(0, ge=0, le=16, description="key frames in the prompt")
    frame_scale: int = Field(3, ge=1, le=8, description="upscaling of frames")
    temperature: float = Field(0.7, gt=0, le=2, description="0 would make all votes copies")
    asking: Literal["votes", "probabilities"] = Field(
        "votes", description="`probabilities` reads expected votes from the log-probabilities of one short reply"
    )
    facts: Literal["full", "short"] = Field("full", description="`short` leaves out totals that are 0 or unknown")
    examples: bool = Field(False, description="answered clips in the prompt, which show a small model the scale")
    spread_scale: float = Field(
        1, gt=0, le=20, description="multiplies the uncertainty of votes that are read from probabilities"
    )
    votes: Votes | None = Field(None, description="replaces `judges.votes`")
    max_prompt_tokens: int = Field(16_000, ge=2000, le=1_000_000, description="tokens of a prompt, one for each byte")
    max_output_tokens: int = Field(300, ge=32, le=4000, description="tokens of one vote")
    prices: PriceValues = Field(default_factory=PriceValues, description="for the money panels and `budget.money`")


class WeightValues(Section):
    """Weights of the dimensions, all five; the template refuses another sum than 1."""

    progress: Weight
    dialog: Weight
    puzzle: Weight
    novelty: Weight
    efficiency: Weight


class BudgetValues(Section):
    """Limits for one epoch, all judge pods together."""

    calls: Annotated[int, Field(ge=1)] | None = Field(None, description="calls; null: no limit")
    tokens: Annotated[int, Field(ge=1)] | None = Field(None, description="prompt and output tokens; null: no limit")
    money: Annotated[float, Field(gt=0)] | None = Field(None, description="money at the judges' prices; null: no limit")


def _judges() -> list[dict[str, Any]]:
    return [
        {"name": "state", "route": "state", "dimensions": ["progress", "dialog", "efficiency"]},
        {"name": "puzzle", "route": "puzzle", "dimensions": ["puzzle"]},
        {"name": "vision", "route": "vision", "dimensions": ["novelty"], "frames": 8, "frameScale": 3},
    ]


class JudgingValues(Section):
    """Judges, votes and limits of requests."""

    mode: Literal["rules", "llmd", "external"] = Field(
        "rules", description="rules judge, the models under `llm`, or other endpoints"
    )
    judges: Annotated[list[JudgeSpecValues], Field(min_length=1, max_length=8)] = Field(
        default_factory=_judges,  # type: ignore[arg-type]  # only what differs from a judge's defaults is written
        description="at most eight judges; fields: name, route, dimensions, frames, frameScale, temperature, asking, "
        "facts, examples, spreadScale, votes, maxPromptTokens, maxOutputTokens, prices (prompt, cached, output); "
        "docs/judges.md explains them",
    )
    weights: WeightValues | None = Field(
        None,
        description="weights of progress, dialog, puzzle, novelty and efficiency, whose sum is 1; null: those of "
        "docs/judges.md, divided among the dimensions that the judges rate",
    )
    votes: Votes = Field(
        default=[3, 7, 11],
        description="rising odd numbers of votes; further steps apply only while votes are split",
    )
    budget: BudgetValues = Field(default_factory=BudgetValues, description="limits of an epoch")
    phases: dict[str, Any] | None = Field(
        None, description="phases and room names as in docs/judges.md; null: those of the two known games"
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

    name: ShortName = Field(description="object name, after the release's; keep it short: controllers append to it")
    uri: Annotated[str, Field(pattern=r"^(hf|s3|oci|pvc)://\S+$")] = Field(
        description="location of the weights: hf and s3 are downloaded into each pod, pvc and oci are mounted"
    )
    weights_size: Quantity = Field(
        "20Gi", description="size of the weights; a download (hf, s3) requests it as ephemeral storage of the node"
    )
    model: str = Field(description="the `model` field of requests")
    replicas: int = Field(1, ge=0, le=16, description="vLLM pods")
    gpus: Literal[1, 2, 4, 8] = Field(1, description="GPUs of a pod; a model's attention heads are divided among them")
    max_model_len: int = Field(
        16384, ge=2048, le=32768, description="context window in tokens; a judge's prompt has at most 16,000"
    )
    images_per_prompt: int = Field(0, ge=0, le=64, description="most images in a prompt; 0 for text models")
    startup_minutes: int = Field(
        30, ge=5, le=240, description="time to load the weights before a restart; the download before it has no limit"
    )
    args: list[str] = Field(default_factory=list, description="additional vLLM arguments (a shell parses them again)")
    resources: Resources = Field(
        default_factory=lambda: resources("4", "24Gi", "8", "48Gi"), description="computing resources, without GPUs"
    )
    node_selector: dict[str, str] = Field(
        default_factory=lambda: {"nvidia.com/gpu.present": "true"}, description="required node labels"
    )
    tolerations: list[Toleration] = Field(
        default_factory=lambda: [Toleration(key=GPU, effect="NoSchedule")], description="accepted taints"
    )


def _model(name: str, repository: str, **more: Any) -> LlmModelValues:
    return LlmModelValues(name=name, uri=f"hf://{repository}", model=repository, **more)


LARGE = resources("8", "96Gi", "16", "160Gi")


class LlmModelsValues(OpenSection):
    """The models; further ones may be added."""

    __pydantic_extra__: dict[str, LlmModelValues]

    state: LlmModelValues = Field(
        default_factory=lambda: _model("qwen25-7b", "Qwen/Qwen2.5-7B-Instruct"),
        description="text model of the state judge",
    )
    puzzle: LlmModelValues = Field(
        default_factory=lambda: _model(
            "qwen25-32b", "Qwen/Qwen2.5-32B-Instruct", gpus=4, weights_size="70Gi", resources=LARGE
        ),
        description="text model of the puzzle judge",
    )
    vision: LlmModelValues = Field(
        default_factory=lambda: _model(
            "qwen25-vl-32b",
            "Qwen/Qwen2.5-VL-32B-Instruct",
            gpus=4,
            weights_size="70Gi",
            resources=LARGE,
            images_per_prompt=8,
        ),
        description="model with images of the vision judge",
    )


class SharedLlmValues(Section):
    """Models of another namespace, which this release does not create (`llm.enabled: false`)."""

    namespace: Name = Field("", description="namespace of the models; their `name` is used as it is")
    objective: Name = Field("", description="InferenceObjective there that judge requests name; empty: none")
    planner_objective: Name = Field(
        "", description="InferenceObjective there that requests of planner and guidance name; empty: none"
    )
    create_role_binding: bool = Field(
        False, description="allow judges and planner to call the models; needs rights in that namespace"
    )


class LlmValues(Section):
    """Language models served by OpenShift AI (KServe LLMInferenceService, llm-d)."""

    enabled: bool = Field(False, description="create the LLMInferenceServices and their permissions")
    shared: SharedLlmValues = Field(default_factory=SharedLlmValues, description="models of another namespace instead")
    auth: bool = Field(True, description="callers need a token (requires Red Hat Connectivity Link)")
    use_gateway: bool = Field(
        True, description="call the gateway; false calls the pods' Service without scheduler and auth"
    )
    gateway_url: Url = Field(
        "https://openshift-ai-inference-openshift-default.openshift-ingress.svc.cluster.local",
        description="address of the inference gateway inside the cluster",
    )
    priority: int = Field(
        -10, ge=-1000, le=1000, description="priority of judge requests; below 0, requests of users go first"
    )
    token_secret: Name = Field(
        "", description="Secret with the entry HF_TOKEN, for downloads of gated weights; empty for public ones"
    )
    models: LlmModelsValues = Field(default_factory=LlmModelsValues, description="models by the judges' routes")
