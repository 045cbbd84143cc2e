"""What goes into a training and what comes out: plain values, which cross to another process as JSON.

Nothing here loads torch, and nothing is unpickled, not even between two processes of our own.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict

from services.rewardmodel.domain.dataset import SegmentFeatures
from services.rewardmodel.domain.metrics import Reliability, ScoreSpread
from services.rewardmodel.domain.ratings import Rating
from services.rewardmodel.settings import RewardModelGroup
from shared.contracts.card import EpochScore, Fit, PairAccuracy


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


class _WireModel(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants"
    )


class TrainingRequest(_WireModel):
    """One training: what to learn from (three lists of one length) and how. `previous` is a reward model file."""

    group: RewardModelGroup
    ratings: list[Rating]
    features: list[SegmentFeatures]
    folds: list[int]
    observation: str
    seed: int
    epoch: int
    quorum: bool
    previous: bytes | None


SLICE: Final = 100  # segments of an request that cross at once: thousands as one document would be tens of megabytes


def split_request(request: TrainingRequest) -> Iterator[TrainingRequest]:
    """The request in several, at least one; `join_request` is the inverse."""
    for begin in range(0, max(1, len(request.ratings)), SLICE):
        part = slice(begin, begin + SLICE)
        yield request.model_copy(
            update={
                "ratings": request.ratings[part],
                "features": request.features[part],
                "folds": request.folds[part],
                "previous": request.previous if begin == 0 else None,
            }
        )


def join_request(parts: Iterable[TrainingRequest]) -> TrainingRequest:
    """One request again."""
    whole = list(parts)
    lists = {name: [one for part in whole for one in getattr(part, name)] for name in ("ratings", "features", "folds")}
    return whole[0].model_copy(update=lists)


class TrainingResult(_WireModel):
    """A trained and measured model: its file, its plain state dict for other tools, and how long it took."""

    report: TrainingReport
    fit: Fit
    validation_loss: dict[str, float]
    weights: bytes
    state_dict: bytes
    seconds: float


class TrainFunction(Protocol):
    """Fills an request somewhere else than on the event loop."""

    async def __call__(self, request: TrainingRequest, should_cancel: Callable[[], bool]) -> TrainingResult:
        """Raise Interrupted soon after `interrupted()` turned true."""
        ...
