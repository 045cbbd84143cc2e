"""What the reward model of a run learns from."""

from typing import Literal

from pydantic import ConfigDict, Field

from shared.contracts.base import Contract

LabelSource = Literal["ratings", "pairs", "both"]


class LabelsConfig(Contract):
    """What a reward model learns from: the ratings of single segments, or comparisons of two segments."""

    model_config = ConfigDict(extra="forbid")

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
