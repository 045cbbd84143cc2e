"""The card of a reward model: how it was made, how good it is on held-out episodes, and whether it may shape."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.contracts.base import Contract
from shared.contracts.events import Epoch, Key
from shared.contracts.ids import Digest, RunId


class PairAccuracy(Contract):
    """Share of held-out preference pairs ordered rightly. Pairs are split by episode, never by pair."""

    confident: float | None = Field(None, ge=0, le=1, description="pairs whose scores differ by more than the margin")
    all: float | None = Field(None, ge=0, le=1, description="all pairs but exact ties")
    pairs: int = Field(0, ge=0, description="confident held-out pairs")


class Calibration(Contract):
    """How far predicted probabilities are from outcomes on held-out pairs, after temperature scaling."""

    temperature: float = Field(gt=0)
    ece: float = Field(ge=0, le=1, description="expected calibration error, 10 bins")
    brier: float = Field(ge=0, le=1)


class RewardModelCard(Contract):
    """Commit object of `rm.trained`."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    observation: str = Field(max_length=20, description="layout of its input; another layout is refused")
    weights_key: Key
    weights_digest: Digest
    data_digest: Digest = Field(description="SHA-256 over the sorted digests of the score objects used")
    ensemble: int = Field(ge=1, le=50)
    segments: int = Field(ge=0, description="judged segments used")
    pairs_train: int = Field(ge=0)
    pairs_heldout: int = Field(ge=0)
    accuracy: PairAccuracy
    baselines: dict[Annotated[str, Field(max_length=40)], float | None] = Field(
        default_factory=dict, description="confident accuracy of `step_index`, `linear`, `shuffled_labels`"
    )
    calibration: Calibration | None = None
    rank_correlation: float | None = Field(
        None, ge=-1, le=1, description="Spearman of model and judge on held-out segments"
    )
    sensitivity: dict[Annotated[str, Field(max_length=60)], float] = Field(default_factory=dict, max_length=512)
    spread: float | None = Field(None, ge=0, description="standard deviation over the current policy's states")
    gates_passed: bool
    gates: dict[Annotated[str, Field(max_length=60)], bool] = Field(
        default_factory=dict, description="each gate's outcome"
    )
    seconds: float = Field(ge=0)
    created: datetime
