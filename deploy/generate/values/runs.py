"""Values of new runs: what they get from the size of the cluster."""

from typing import Any

from pydantic import Field

from deploy.generate.values.field_types import Section


class RunsValues(Section):
    """Defaults of new runs. A request may replace each; one that needs more cores than the workers have is refused."""

    from_workers: bool = Field(
        True, description="derive env_runners, envs_per_runner and batch_size from `ray.workers` (backend `ray`)"
    )
    envs_per_runner: int = Field(4, ge=1, le=256, description="environments of each env runner")
    steps_per_env: int = Field(128, ge=8, le=4096, description="steps of each environment in a batch")
    learners: int = Field(
        1,
        ge=1,
        le=64,
        description="processes that share each gradient step, such as one more than `ray.workers.min`; they compute "
        "while the env runners wait",
    )
    defaults: dict[str, Any] = Field(
        default_factory=dict, description="fields of new runs, such as `{world: garden, epochs: 50}`; they win"
    )
