"""The card of a reward model: its data, its quality on held-out episodes, and whether it may shape."""

from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field

from shared.contracts.base import Contract
from shared.contracts.epoch import RewardModelRef
from shared.contracts.events import Epoch, Key
from shared.contracts.ids import Digest, RunId
from shared.contracts.learning.reward_learning import LabelSource

Pooling = Literal["mean", "gain"]
Fit = Literal["none", "full", "strict", "warm"]

REWARD_MODEL_VIEWS: Final = frozenset({"counters/v1", "obs/v1"})
"""What a reward model may see: an episode's event counters, or (until 2026-11-22) the policy's observation."""


class PairAccuracy(Contract):
    """Share of held-out preference pairs in the right order. Data are split by episode, never by pair."""

    confident: float | None = Field(None, ge=0, le=1, description="pairs whose scores differ by more than the margin")
    all: float | None = Field(None, ge=0, le=1, description="all pairs but exact ties")
    pairs: int = Field(0, ge=0, description="confident held-out pairs")
    low: float | None = Field(None, ge=0, le=1, description="95 % interval of `confident`, bootstrapped over episodes")
    high: float | None = Field(None, ge=0, le=1)


class Calibration(Contract):
    """Deviation of predicted probabilities from outcomes on held-out pairs, after temperature scaling."""

    temperature: float = Field(gt=0)
    ece: float = Field(ge=0, le=1, description="expected calibration error, 10 bins")
    brier: float = Field(ge=0, le=1)


class EpochScore(Contract):
    """One epoch's segments by model score, judge score and milestones; comparable only within one card."""

    epoch: Epoch
    segments: int = Field(ge=1, description="judged segments of the epoch among the data")
    model_score: float = Field(description="mean ensemble score of their states, in standard deviations")
    judge_score: float = Field(ge=0, le=1, description="mean weighted score")
    milestones: float | None = Field(None, ge=0, description="milestones reached by an episode, mean over episodes")


class ComparedPairs(Contract):
    """Pairs of segments that a judge compared directly, as labels. All 0 if ratings alone taught the model."""

    train: int = Field(0, ge=0, description="pairs that trained at least one member")
    ties: int = Field(0, ge=0, description="of all compared pairs those without a winner, as where the orders disagree")
    unused: int = Field(0, ge=0, description="compared pairs with a segment that the training did not use")
    abstained: int = Field(0, ge=0, description="selected pairs without a valid answer")
    heldout: int = Field(0, ge=0, description="pairs with a winner whose two episodes one member never trained on")
    accuracy: float | None = Field(None, ge=0, le=1, description="share of the held-out pairs in the judge's order")
    digest: Digest | None = Field(None, description="SHA-256 over the sorted digests of the comparisons used")


class RewardModelCard(Contract):
    """Commit object of `rm.trained`."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    observation: str = Field(max_length=20, description="the view that it reads, one of REWARD_MODEL_VIEWS")
    weights_key: Key
    weights_digest: Digest
    data_digest: Digest = Field(description="SHA-256 over the sorted digests of the score objects used")
    ensemble: int = Field(ge=1, le=50)
    segments: int = Field(ge=0, description="judged segments used")
    capacity: int | None = Field(
        None, ge=1, description="maximum segments of the training; null on cards older than 2026-11-28"
    )
    new_share: float | None = Field(
        None, ge=0, le=1, description="minimum share of the newest epoch's segments; null on cards without a capacity"
    )
    labels: LabelSource = Field(
        "ratings", description="what trained the model: ratings of segments, compared pairs, or both"
    )
    pairs_train: int = Field(ge=0)
    pairs_heldout: int = Field(ge=0)
    compared: ComparedPairs = Field(ComparedPairs(), description="pairs that a judge compared directly")
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
    thresholds: dict[Annotated[str, Field(max_length=60)], float] = Field(
        default_factory=dict, max_length=40, description="what the gates needed; empty on cards older than 2026-11-23"
    )
    seconds: float = Field(ge=0)
    created: AwareDatetime
    seed: int | None = Field(
        None, ge=0, description="of the training, from run seed and epoch; null on cards older than 2026-11-24"
    )
    pooling: Pooling = Field("mean", description="a segment's score: mean over its states, or last minus first state")
    fit: Fit = Field(
        "full", description="`strict`: more restraint; `warm`: continues the previous one; `none`: no data"
    )
    validation_loss: dict[Annotated[str, Field(max_length=20)], float] = Field(
        default_factory=dict, description="of each kind of fit that was tried, on validation episodes"
    )
    episodes: int = Field(0, ge=0, description="episodes behind the segments: the number of independent samples")
    outcomes: dict[Annotated[str, Field(max_length=20)], int] = Field(
        default_factory=dict, description="this epoch's listed segments: judged, abstained, dead, missing"
    )
    epochs: list[EpochScore] = Field(default_factory=list, max_length=100, description="oldest first")
    outside: float | None = Field(
        None, ge=0, le=1, description="share of the current policy's states scored beyond two standard deviations"
    )
    disagreement: float | None = Field(None, ge=0, description="mean deviation of the members over training states")
    masked: list[Annotated[str, Field(max_length=60)]] = Field(
        default_factory=list, max_length=512, description="features that the model ignores"
    )
    history: list[RewardModelRef] = Field(
        default_factory=list, max_length=100, description="earlier models of this run that passed, oldest first"
    )
    notes: list[Annotated[str, Field(max_length=300)]] = Field(
        default_factory=list, max_length=20, description="remarks for readers, e.g. that the data are few"
    )

    def reference(self, key: str, digest: str) -> RewardModelRef:
        """How others name this model. `key` and `digest` are those of the stored card."""
        return RewardModelRef(
            epoch=self.epoch,
            weights_key=self.weights_key,
            weights_digest=self.weights_digest,
            card_key=key,
            card_digest=Digest(digest),
        )
