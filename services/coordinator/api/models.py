"""Request and response bodies of the REST interface that are not contracts in `shared`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shared.contracts.events import RunState
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId, Tag
from shared.contracts.progress import RunProgress
from shared.contracts.run import RunConfig, RunRecord

Item = TypeVar("Item")


class NewRun(BaseModel):
    """A new run. Every field of the configuration has a default."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"run": "first-steps", "config": {"world": "garden", "epochs": 3, "epoch_steps": 20000, "seed": 7}}
            ]
        },
    )

    run: RunId | None = Field(None, description="name of the run; random by default")
    config: RunConfig = Field(default_factory=lambda: RunConfig())

    @field_validator("config")
    @classmethod
    def _yields_segments(cls, config: RunConfig) -> RunConfig:
        """Check this here and not in RunConfig: records of older runs without this check must stay readable."""
        environments = max(1, config.env_runners) * config.envs_per_runner
        per_environment = config.played_steps // environments
        if per_environment < config.segment_steps:
            raise ValueError(
                f"epoch_steps {config.epoch_steps} give {per_environment} to each of {environments} environments, "
                f"fewer than segment_steps {config.segment_steps}: no segment would be complete; "
                "raise epoch_steps or lower the number of environments"
            )
        return config


class Page(BaseModel, Generic[Item]):
    """One page of a list. Set `after` to `next` to get the next page."""

    items: list[Item]
    next: str | None = Field(None, description="null on the last page")


class RunListItem(BaseModel):
    """One run in the list of runs."""

    run: RunId
    state: RunState
    epoch: int
    epochs_planned: int | None
    attempt: int
    world: str = Field(description="game and world, e.g. `bramble:garden`")
    created: datetime
    updated: datetime
    reason: str | None
    tags: list[Tag] = Field(default_factory=list)


class RunDetail(BaseModel):
    """One run: its record and its progress."""

    record: RunRecord
    progress: RunProgress | None = Field(None, description="null in the first seconds of the run")


class DeletedRun(BaseModel):
    """What a deletion removed."""

    run: RunId
    objects: dict[str, int] = Field(description="number of objects by kind, e.g. `segments`")
    bytes: int


class SegmentListItem(BaseModel):
    """One recorded segment."""

    segment: SegmentId
    episode: EpisodeId
    epoch: int
    key: str
    size: int = Field(description="bytes")
    recorded: datetime
    status: str | None = Field(None, description="judged, abstained or dead; null until it is judged")
    digest: Digest | None = Field(None, description="null until the epoch is finished")


def run_list_item(record: RunRecord, tags: Sequence[Tag] = ()) -> RunListItem:
    """A run's record, shortened for the list."""
    config = record.config
    return RunListItem(
        run=record.run,
        state=record.state,
        epoch=record.epoch,
        epochs_planned=config.planned_epochs,
        attempt=record.attempt,
        world=f"bramble:{config.world}" if config.game == "bramble" else config.game,
        created=record.created,
        updated=record.updated,
        reason=record.reason,
        tags=list(tags),
    )
