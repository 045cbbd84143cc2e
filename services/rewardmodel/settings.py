"""Settings of the reward model service (`ZELDA_REWARDMODEL__...`), in addition to the common ones."""

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from shared.config.settings import ServiceSettings, SettingsGroup
from shared.contracts.card import Pooling
from shared.game.observation import counters
from shared.game.observation.layout import FEATURES

LASTING_BLOCKS: Final = frozenset({"dungeon", "health", "items", "keys"})
LASTING_COUNTS: Final = frozenset({"rooms_seen", "levers", "torches", "shutters_open"})
View = Literal["counters/v1", "obs/v1"]
INPUTS: Final[dict[View, tuple[str, ...]]] = {
    "counters/v1": counters.NAMES,
    "obs/v1": tuple(feature.name for feature in FEATURES),
}
"""The inputs of each view, in order."""

PASSING: Final = tuple(f.name for f in FEATURES if f.block not in LASTING_BLOCKS and f.name not in LASTING_COUNTS)
"""Features of obs/v1 that describe the hero's place and recent actions; its default mask. ADR 0007 has the reasons.

A model that sees places rewards standing in the best known room and gives no reason to explore. A model that sees the
time since the last new room rewards entering a room and then takes the reward back. docs/study.md has measurements."""


class GateSettings(SettingsGroup):
    """Thresholds that a reward model must reach before it may shape rewards; see docs/reward-model.md."""

    accuracy_confident: float = Field(0.70, ge=0, le=1)
    accuracy_all: float = Field(0.60, ge=0, le=1)
    over_step_index: float = Field(0.05, ge=-1, le=1, description="minimum lead over the step index baseline")
    over_linear: float = Field(-0.05, ge=-1, le=1, description="minimum lead over the linear baseline")
    shuffled_low: float = Field(0.40, ge=0, le=0.5)
    shuffled_high: float = Field(0.60, ge=0.5, le=1)
    ece: float = Field(0.25, ge=0, le=1, description="maximum expected calibration error")
    pairs: int = Field(50, ge=1, le=1_000_000, description="minimum number of confident held-out pairs")
    episodes: int = Field(5, ge=2, le=1_000_000, description="minimum number of episodes")
    spread: float = Field(
        0.1, ge=0, le=10, description="minimum standard deviation of scores over the newest epoch's states"
    )


class RewardModelGroup(SettingsGroup):
    """How reward models are trained."""

    members: int = Field(5, ge=3, le=20, description="size of the ensemble, and number of folds")
    pooling: Pooling = Field(
        "gain", description="a segment's score: `gain` from first to last state, or `mean` over its states"
    )
    warm_start: bool = Field(True, description="also continue the previous model, and publish the better one")
    capacity: int = Field(4_000, ge=10, le=50_000, description="maximum segments per training; 16 kB of memory each")
    new_share: float = Field(
        0.3, ge=0, le=1, description="minimum share of the newest epoch, beyond 1,000 old segments"
    )
    pairs_per_segment: int = Field(
        20, ge=2, le=1_000, description="maximum pairs per segment; below 4, blocks of segments are not connected"
    )
    tie_margin: float = Field(0.05, ge=0, le=1, description="maximum difference of scores that counts as a tie")
    quorum: float = Field(0.5, ge=0, le=1, description="minimum share of the epoch's segments that are judged")
    view: View = Field(
        "counters/v1",
        description="what the model sees: an episode's event counters, which never fall, or the policy's observation",
    )
    masked: tuple[str, ...] | None = Field(
        None,
        description="inputs hidden from the model, as a JSON list, [] for none; the default hides nothing of "
        "counters/v1, and of obs/v1 all but lasting achievements",
    )
    monotone: bool = Field(
        True, description="of counters/v1 only: no score may fall when a counter rises; see ADR 0010"
    )
    steps: int = Field(2_000, ge=10, le=100_000, description="maximum steps per training; bounds an epoch's wait")
    shuffles: int = Field(
        4, ge=1, le=10, description="trainings on shuffled labels; with few segments up to three times as many"
    )
    threads: int = Field(1, ge=1, le=64, description="number of torch threads")
    poll_s: float = Field(2.0, ge=0.05, le=60, description="interval of polling for scores, in addition to events")
    gates: GateSettings = Field(default_factory=GateSettings)

    @model_validator(mode="after")
    def _known_inputs(self) -> Self:
        unknown = [name for name in self.masked or () if name not in INPUTS[self.view]]
        if unknown:
            page = "counters.md" if self.view == "counters/v1" else "observation.md"
            raise ValueError(f"masked: {self.view} has no input {', '.join(unknown)}; docs/{page} lists them")
        return self

    @property
    def monotone_inputs(self) -> bool:
        """Whether every input counts progress, so that the model must rise with each of them."""
        return self.monotone and self.view == counters.VERSION

    @property
    def hidden(self) -> tuple[str, ...]:
        """The inputs that the model does not see."""
        if self.masked is not None:
            return self.masked
        return PASSING if self.view == "obs/v1" else ()


class RewardModelSettings(ServiceSettings):
    """Everything that the reward model service reads from its environment."""

    rewardmodel: RewardModelGroup = Field(default_factory=RewardModelGroup)
