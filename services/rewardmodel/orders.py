"""What goes into a training and what comes out: plain values, which cross to another process as JSON.

Nothing here loads torch, and nothing is unpickled, not even between two processes of our own.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict

from services.rewardmodel.domain.dataset import Recording
from services.rewardmodel.domain.metrics import Reliability
from services.rewardmodel.domain.ratings import Rating
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training.measure import Spread
from shared.contracts.card import EpochScore, Fit, PairAccuracy


@dataclass(frozen=True)
class Report:
    """The measured part of a card."""

    accuracy: PairAccuracy
    pairs_train: int
    pairs_heldout: int
    baselines: dict[str, float | None]
    reliability: Reliability | None
    rank_correlation: float | None
    sensitivity: dict[str, float]
    spread: Spread | None
    epochs: list[EpochScore]
    gates: dict[str, bool]
    notes: list[str]


class _Crossing(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants"
    )


class Order(_Crossing):
    """One training: what to learn from (three lists of one length) and how. `previous` is a reward model file."""

    group: RewardModelGroup
    ratings: list[Rating]
    recordings: list[Recording]
    folds: list[int]
    observation: str
    seed: int
    epoch: int
    quorum: bool
    previous: bytes | None


SLICE: Final = 100  # segments of an order that cross at once: thousands as one document would be tens of megabytes


def slices(order: Order) -> Iterator[Order]:
    """The order in several, at least one; `joined` is the inverse."""
    for begin in range(0, max(1, len(order.ratings)), SLICE):
        part = slice(begin, begin + SLICE)
        yield order.model_copy(
            update={
                "ratings": order.ratings[part],
                "recordings": order.recordings[part],
                "folds": order.folds[part],
                "previous": order.previous if begin == 0 else None,
            }
        )


def joined(parts: Iterable[Order]) -> Order:
    """One order again."""
    whole = list(parts)
    lists = {
        name: [one for part in whole for one in getattr(part, name)] for name in ("ratings", "recordings", "folds")
    }
    return whole[0].model_copy(update=lists)


class Product(_Crossing):
    """A trained and measured model: its file, its plain state dict for other tools, and how long it took."""

    report: Report
    fit: Fit
    validation_loss: dict[str, float]
    weights: bytes
    state_dict: bytes
    seconds: float


class Training(Protocol):
    """Fills an order somewhere else than on the event loop."""

    async def __call__(self, order: Order, interrupted: Callable[[], bool]) -> Product:
        """Raise Interrupted soon after `interrupted()` turned true."""
        ...
