"""Request and result of one training: plain values that cross to the training process as JSON.

This module does not import torch. Nothing is pickled, not even between two processes of this project.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict, Field

from services.rewardmodel.domain.compared_pairs import PairLabel
from services.rewardmodel.domain.dataset import SegmentFeatures
from services.rewardmodel.domain.metrics import Reliability, ScoreSpread
from services.rewardmodel.domain.ratings import Rating
from services.rewardmodel.settings import RewardModelGroup
from shared.contracts.card import EpochScore, Fit, PairAccuracy
from shared.contracts.learning.reward_learning import LabelSource

CHUNK_SEGMENTS: Final = 100  # per JSON document: thousands in one document would take tens of megabytes


@dataclass(frozen=True, slots=True)
class ComparedFigures:
    """Compared pairs: those that trained a member, those held out from one, and the share of the latter in order."""

    train: int = 0
    heldout: int = 0
    accuracy: float | None = None


@dataclass(frozen=True)
class TrainingReport:
    """The measured part of a card."""

    accuracy: PairAccuracy
    pairs_train: int
    pairs_heldout: int
    baselines: dict[str, float | None]
    reliability: Reliability | None
    rank_correlation: float | None
    sensitivity: dict[str, float]
    spread: ScoreSpread | None
    epochs: list[EpochScore]
    gates: dict[str, bool]
    notes: list[str]
    compared: ComparedFigures = field(default_factory=ComparedFigures)


class _JsonModel(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants"
    )


class TrainingRequest(_JsonModel):
    """One training: its data (three lists of equal length) and its configuration.

    `compared` are pairs of positions in these lists. `previous` is the reward model file of a warm start, `quorum`
    whether enough of the epoch's segments were judged.
    """

    group: RewardModelGroup
    ratings: list[Rating]
    features: list[SegmentFeatures]
    folds: list[int]
    observation: str
    seed: int
    epoch: int
    quorum: bool
    previous: bytes | None
    labels: LabelSource = "ratings"
    compared: list[PairLabel] = Field(default_factory=list)


class TrainingResult(_JsonModel):
    """A trained and evaluated model. `weights` is its file, `state_dict` a plain torch copy for other tools."""

    report: TrainingReport
    fit: Fit
    validation_loss: dict[str, float]
    weights: bytes
    state_dict: bytes
    seconds: float


class TrainFunction(Protocol):
    """Runs a training outside the event loop."""

    async def __call__(self, request: TrainingRequest, should_cancel: Callable[[], bool]) -> TrainingResult:
        """Train; raise TrainingCancelled soon after `should_cancel()` returns True."""
        ...


def split_request(request: TrainingRequest) -> Iterator[TrainingRequest]:
    """Split the request into chunks of CHUNK_SEGMENTS segments, at least one; `join_request` is the inverse."""
    for begin in range(0, max(1, len(request.ratings)), CHUNK_SEGMENTS):
        chunk = slice(begin, begin + CHUNK_SEGMENTS)
        yield request.model_copy(
            update={
                "ratings": request.ratings[chunk],
                "features": request.features[chunk],
                "folds": request.folds[chunk],
                "previous": request.previous if begin == 0 else None,
                "compared": request.compared if begin == 0 else [],
            }
        )


def join_request(chunks: Iterable[TrainingRequest]) -> TrainingRequest:
    """Join the chunks of `split_request`."""
    parts = list(chunks)
    lists = {
        name: [value for part in parts for value in getattr(part, name)] for name in ("ratings", "features", "folds")
    }
    return parts[0].model_copy(update=lists)
