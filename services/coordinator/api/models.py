"""Bodies of requests and answers of the REST interface that are not contracts of their own."""

from datetime import datetime
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shared.contracts.events import RunState
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.contracts.progress import RunProgress
from shared.contracts.run import RunConfig, RunRecord

Item = TypeVar("Item")


class NewRun(BaseModel):
    """What to run. Every field of the configuration has a default."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"run": "first-steps", "config": {"world": "garden", "epochs": 3, "epoch_steps": 20000, "seed": 7}}
            ]
        },
    )

    run: RunId | None = Field(None, description="name of the run; one is made up if it is missing")
    config: RunConfig = Field(default_factory=lambda: RunConfig())

    @field_validator("config")
    @classmethod
    def _gives_segments(cls, config: RunConfig) -> RunConfig:
        """Of new runs only: the records of older ones, which nobody asked this, must stay readable."""
        environments = max(1, config.env_runners) * config.envs_per_runner
        steps = -(-config.epoch_steps // config.batch_size) * config.batch_size  # an epoch ends with a batch
        each = steps // environments
        if each < config.segment_steps:
            raise ValueError(
                f"epoch_steps {config.epoch_steps} are {each} for each of {environments} environments, fewer than "
                f"segment_steps {config.segment_steps}: an epoch would give nothing to judge; "
                "raise epoch_steps or take fewer environments"
            )
        return config


class Page(BaseModel, Generic[Item]):
    """Part of a list. Ask again with `after` set to `next` for what follows."""

    items: list[Item]
    next: str | None = Field(None, description="null: this was the last page")


class RunLine(BaseModel):
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


class RunDetail(BaseModel):
    """One run: its record and where it is now."""

    record: RunRecord
    progress: RunProgress | None = Field(None, description="null until the coordinator first looked at the run")


class SegmentLine(BaseModel):
    """One recorded segment."""

    segment: SegmentId
    episode: EpisodeId
    epoch: int
    key: str
    size: int = Field(description="bytes")
    recorded: datetime
    status: str | None = Field(None, description="judged, abstained or dead; null while it waits")
    digest: Digest | None = Field(None, description="known when the epoch is finished")


def line(record: RunRecord) -> RunLine:
    """A run's record, shortened for the list."""
    config = record.config
    return RunLine(
        run=record.run,
        state=record.state,
        epoch=record.epoch,
        epochs_planned=config.planned_epochs,
        attempt=record.attempt,
        world=f"bramble:{config.world}" if config.game == "bramble" else config.game,
        created=record.created,
        updated=record.updated,
        reason=record.reason,
    )
