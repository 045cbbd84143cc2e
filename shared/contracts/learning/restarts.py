"""Where training episodes begin besides the true start, and which play the policy imitates: blocks of a RunConfig."""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from shared.contracts.base import Configuration

ImitationSource = Literal["judged", "archive", "both"]
RestartMode = Literal["archive", "backward"]
RestartSelection = Literal["novelty", "judges", "random"]

MIN_SHARE: Final = 0.01  # a driver draws from a hundred starts: a smaller share would get none of them


def _drawn(share: float) -> float:
    if 0 < share < MIN_SHARE:
        raise ValueError(f"no episode would begin there: set it to 0, or to {MIN_SHARE} or more")
    return share


def with_least_share(restarts: Any) -> Any:
    """Runs older than 2026-11-29 may have a smaller share; their archive goes on with the least that is drawn."""
    share = restarts.get("share", 0) if isinstance(restarts, dict) else 0
    if isinstance(share, int | float) and 0 < share < MIN_SHARE:
        return {**restarts, "share": MIN_SHARE}
    return restarts


class RestartsConfig(Configuration):
    """How many episodes begin at states of the run's archive. Evaluation always begins at the true start."""

    share: Annotated[float, AfterValidator(_drawn)] = Field(
        0, ge=0, le=0.9, description="share of episodes that begin at a state of the archive, at least 0.01; 0: none"
    )
    mode: RestartMode = Field(
        "archive",
        description="`archive`: at states that the selection draws; `backward`: ever earlier on the trajectory to the "
        "archive's most valuable cell, until the policy reaches it from the true start",
    )
    explore: int = Field(
        0,
        ge=0,
        le=1_000_000_000,
        description="steps of an exploration without a network before the first epoch, whose best path begins the "
        "archive; 0: none",
    )
    selection: RestartSelection = Field(
        "novelty",
        description="which states: `novelty` prefers those seldom visited, `judges` those that the reward model values "
        "most, `random` none",
    )
    cell: int = Field(2, ge=1, le=15, description="tiles across a cell of the archive, in each direction")
    stride: int = Field(25, ge=1, le=10_000, description="`backward`: mean steps between two starts on the trajectory")
    window: int = Field(8, ge=1, le=50, description="`backward`: starts that an epoch tries")
    threshold: float = Field(
        0.5,
        gt=0,
        le=1,
        description="`backward`: starts move back past one when this share of its episodes reaches the goal",
    )
    goal_reward: float = Field(
        1.0, ge=0, le=100, description="`backward`: reward for each goal of the trajectory that an episode reaches"
    )
    trail_reward: float = Field(
        0.3,
        ge=0,
        le=100,
        description="`backward`: reward for each coarse tile of the trajectory that an episode passes, and for each "
        "hit at an enemy that the trajectory makes too; 0: none",
    )

    @property
    def backward(self) -> bool:
        """Whether episodes begin by the backward curriculum."""
        return bool(self.share) and self.mode == "backward"


class ImitationConfig(Configuration):
    """How strongly the policy imitates the best judged play and the archive's trajectories, beside PPO."""

    mode: Literal["none", "sil", "awr"] = Field(
        "none",
        description="what weighs an imitated segment: `sil` how far its score exceeds the mean, as in self-imitation; "
        "`awr` the exponential of that difference, as in advantage-weighted regression",
    )
    source: ImitationSource = Field(
        "judged",
        description="what is imitated: `judged` segments, trajectories of the `archive` of states, which are scored by "
        "their returns, or `both`, half of the rows each",
    )
    trajectories: int = Field(
        8, ge=1, le=100, description="trajectories of the archive that are imitated, drawn by restarts.selection"
    )
    top_k: int = Field(50, ge=1, le=1_000, description="segments that are imitated, best score first")
    coefficient: float = Field(0.1, gt=0, le=100, description="weight of the imitation loss beside the policy loss")
    beta: float = Field(0.1, gt=0, le=10, description="temperature of `awr`, in units of the score (0 to 1)")
    recovery_share: float = Field(
        0,
        ge=0,
        le=0.9,
        description="share of the imitated rows that show the way back to the trajectory of `restarts.mode` "
        "`backward`, from where the executor led the hero astray; 0: none",
    )
    epochs_back: int = Field(5, ge=1, le=1_000, description="epochs before this one whose judged segments are compared")

    @property
    def of_judged(self) -> bool:
        """Whether judged segments are imitated."""
        return self.mode != "none" and self.source != "archive"

    @property
    def of_archive(self) -> bool:
        """Whether trajectories of the state archive are imitated."""
        return self.mode != "none" and self.source != "judged"

    @property
    def compares_one(self) -> bool:
        """Whether one trajectory alone is weighed by its lead over the mean, which gives it no weight."""
        return self.mode == "sil" and self.source == "archive" and self.trajectories == 1
