"""What the reward model of a run learns from, and how it shapes the reward."""

from typing import Literal

from pydantic import Field

from shared.contracts.base import Configuration

LabelSource = Literal["ratings", "pairs", "both"]
ShapingMode = Literal["gain", "potential", "additive", "none"]


class LabelsConfig(Configuration):
    """What a reward model learns from: the ratings of single segments, or comparisons of two segments."""

    source: LabelSource = Field(
        "ratings",
        description="`ratings`: each segment's score; `pairs`: which of two segments the judge prefers; `both`. "
        "Segments are rated in any case, because a model is measured on ratings",
    )
    pairs: int = Field(
        30, ge=1, le=10_000, description="pairs that the judge of progress compares after an epoch, in both orders"
    )

    @property
    def compares(self) -> bool:
        """Whether judges compare pairs."""
        return self.source != "ratings"


class ShapingConfig(Configuration):
    """How the reward model shapes the reward."""

    mode: ShapingMode = Field("gain", description="Phi(s')-Phi(s), gamma*Phi(s')-Phi(s), the plain score, or nothing")
    coefficient: float = Field(2.0, ge=0, le=100, description="weight of the shaping term")
    conservatism: float = Field(
        1.0, ge=0, le=10, description="k in Phi = mean - k * standard deviation of the ensemble"
    )
