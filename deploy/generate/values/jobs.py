"""Values of single jobs outside of the ring."""

from typing import Annotated

from pydantic import Field

from deploy.generate.values.field_types import Env, Resources, Section, resources
from shared.contracts.ids import ID_PATTERN


class JobValues(Section):
    """A job that runs once."""

    enabled: bool = Field(False, description="create the job")
    run: Annotated[str, Field(pattern=f"^$|{ID_PATTERN}")] = Field("", description="run of the job")
    env: Env = Field(default_factory=dict, description="further settings")


class EpochJobValues(JobValues):
    """Trains the next epoch of a run without judges; an existing run continues from its last checkpoint."""

    set: list[Annotated[str, Field(pattern=r"^[a-z_.]+=[A-Za-z0-9:._/-]+$")]] = Field(
        default_factory=list, description="fields of a new run, `name=value`"
    )


class EvaluationJobValues(JobValues):
    """Judges the segments of an epoch that have no score."""

    epoch: int = Field(0, ge=0, description="epoch whose segments are judged")
    resources: Resources = Field(
        default_factory=lambda: resources("250m", "512Mi", "1", "1Gi"), description="computing resources"
    )


class RewardModelJobValues(JobValues):
    """Trains the reward model of an epoch from its scores."""

    epoch: int = Field(0, ge=0, description="newest epoch whose scores are used")
    resources: Resources = Field(
        default_factory=lambda: resources("1", "2Gi", "2", "3Gi"), description="computing resources"
    )


class JobsValues(Section):
    """Single jobs outside of the ring. Each runs once; other values make another job."""

    epoch: EpochJobValues = Field(
        default_factory=EpochJobValues, description="RayJob that trains one epoch (`services.trainer.backend: ray`)"
    )
    evaluation: EvaluationJobValues = Field(
        default_factory=EvaluationJobValues, description="judge one epoch's segments"
    )
    rewardmodel: RewardModelJobValues = Field(
        default_factory=RewardModelJobValues, description="train one reward model"
    )
