"""Which segments of an epoch are recorded, and where they go. Plain data: it travels to env runners."""

from pydantic import BaseModel, ConfigDict, Field

from shared.config.settings import StoreSettings
from shared.contracts.events import Epoch
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import SamplingConfig


class RecordingConfig(BaseModel):
    """The recording of one env runner in one epoch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: RunId
    epoch: Epoch
    store: StoreSettings
    sampling: SamplingConfig = SamplingConfig()
    epoch_steps: int = Field(
        300_000, ge=1, description="steps of the epoch still to come; the budget is spread over them"
    )
    recorded: int = Field(0, ge=0, description="segments that the epoch has already: they count against the budget")
    runners: int = Field(1, ge=1, description="env runners that share the budget")
    checkpoint: Digest | None = None
    reward_model: Digest | None = None
    slots: int = Field(16, ge=1, le=256, description="segments that may wait for the store before some are dropped")
