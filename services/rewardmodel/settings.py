"""Settings of the reward model service, `ZELDA_REWARDMODEL__...`, beside the common ones."""

from typing import Final

from pydantic import Field, field_validator

from shared.config.settings import ServiceSettings, SettingsGroup
from shared.contracts.card import Pooling
from shared.game.observation.layout import FEATURES, INDEX

BLOCKS: Final = frozenset({"dungeon", "health", "items", "keys"})
COUNTS: Final = frozenset({"rooms_seen", "levers", "torches", "shutters_open"})
PASSING: Final = tuple(f.name for f in FEATURES if f.block not in BLOCKS and f.name not in COUNTS)
"""Features that say where the hero is and what he just did, not what he has achieved. A model that sees places pays
for standing in the best room that it knows and gives no reason to look for another; one that sees the time since the
last new room pays for a room and takes it back. What is left lasts until the end of an episode: docs/study.md."""


class GateSettings(SettingsGroup):
    """What a reward model must reach before it may shape; see docs/reward-model.md."""

    accuracy_confident: float = Field(0.70, ge=0, le=1)
    accuracy_all: float = Field(0.60, ge=0, le=1)
    over_step_index: float = Field(0.05, ge=-1, le=1, description="better than the clock by so much")
    over_linear: float = Field(-0.05, ge=-1, le=1, description="better than a straight line by so much")
    shuffled_low: float = Field(0.40, ge=0, le=0.5)
    shuffled_high: float = Field(0.60, ge=0.5, le=1)
    ece: float = Field(0.25, ge=0, le=1, description="largest calibration error")
    pairs: int = Field(50, ge=1, le=1_000_000, description="least confident held-out pairs")
    episodes: int = Field(5, ge=2, le=1_000_000, description="least episodes")
    spread: float = Field(0.1, ge=0, le=10, description="least deviation over the current policy's states")


class RewardModelGroup(SettingsGroup):
    """How reward models are trained."""

    members: int = Field(5, ge=3, le=20, description="size of the ensemble, and number of folds")
    pooling: Pooling = Field(
        "gain", description="a segment's score: `gain` from first to last state, or `mean` over its states"
    )
    warm_start: bool = Field(True, description="also continue the previous model, and keep the better of the two")
    capacity: int = Field(4_000, ge=10, le=50_000, description="most segments of one training; 16 kB of memory each")
    new_share: float = Field(0.3, ge=0, le=1, description="least share of the newest epoch, beyond 1,000 old segments")
    pairs_per_segment: int = Field(
        20, ge=2, le=1_000, description="most pairs a segment is in; below 4, blocks of segments are not connected"
    )
    tie_margin: float = Field(0.05, ge=0, le=1, description="scores this close are equal")
    quorum: float = Field(0.5, ge=0, le=1, description="least share of the epoch's segments that are judged")
    masked: tuple[str, ...] = Field(
        PASSING,
        description="features of obs/v1 that the model must not see, as a JSON list, [] for none; by default all but "
        "lasting achievements",
    )
    steps: int = Field(2_000, ge=10, le=100_000, description="most steps of one training; bounds an epoch's wait")
    shuffles: int = Field(
        4, ge=1, le=10, description="trainings on shuffled labels; with few segments up to thrice as many"
    )
    threads: int = Field(1, ge=1, le=64, description="of torch")
    poll_s: float = Field(2.0, ge=0.05, le=60, description="how often scores are looked for, beside their events")
    streaming: bool = Field(True, description="retrain while scores stream in, to start warm when they are complete")
    quiet_s: float = Field(5.0, ge=0, le=600, description="pause in the stream before a retraining")
    rest_s: float = Field(60.0, ge=0, le=3_600, description="least time between two retrainings")
    gates: GateSettings = Field(default_factory=GateSettings)

    @field_validator("masked")
    @classmethod
    def _known_features(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        strange = [name for name in names if name not in INDEX]
        if strange:
            raise ValueError(f"{', '.join(strange)}: no such feature; docs/observation.md lists them")
        return names


class RewardModelSettings(ServiceSettings):
    """Everything the reward model service reads from its environment."""

    rewardmodel: RewardModelGroup = Field(default_factory=RewardModelGroup)
