"""The scores of one segment: every vote with its judge, the merged value per dimension, and the raw replies."""

import gzip
import io
import zlib
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field

from shared.contracts.base import Contract
from shared.contracts.events import Epoch, ScoreStatus
from shared.contracts.ids import Digest, EpisodeId, JudgeName, RunId, SegmentId
from shared.errors import ContractError

RubricVersion = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
DimensionName = Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,29}$")]
DIMENSIONS: tuple[str, ...] = ("progress", "dialog", "puzzle", "novelty", "efficiency")
TIE_DIGITS = 9
"""Scores that are equal to so many digits are ties: sums of equal votes in another order differ in the last digits."""
MAX_VOTE = 5
MAX_REPLIES_BYTES = 4 * 1024 * 1024  # unpacked; a prompt without pictures has some 20 kB
MAX_REPLY = 100_000  # characters of a kept reply


class DimensionScore(Contract):
    """Votes of one judge on one rubric dimension, on the anchored scale 0-5, and their median mapped to [0, 1].

    A vote that was read from probabilities is the most probable one, and the value is the expected vote.
    """

    votes: list[Annotated[int, Field(ge=0, le=MAX_VOTE)]] = Field(min_length=1, max_length=11)
    value: float = Field(ge=0, le=1)
    unanimous: bool
    spread: int = Field(ge=0, le=MAX_VOTE, description="largest minus smallest vote")
    deviation: float | None = Field(
        None, ge=0, description="standard deviation of the vote in votes, if it was read from probabilities"
    )


class Usage(Contract):
    """The cost of one judge's requests for one segment."""

    calls: int = Field(0, ge=0)
    prompt_tokens: int = Field(0, ge=0)
    cached_tokens: int = Field(0, ge=0)
    output_tokens: int = Field(0, ge=0)
    seconds: float = Field(0, ge=0)
    money: float = Field(0, ge=0, description="estimate in the currency of the configured prices")


class JudgeResult(Contract):
    """One judge's result for one segment. `abstained` has reasons and no number."""

    judge: JudgeName
    route: str = Field(max_length=200)
    model: str = Field(max_length=120)
    prompt: Digest = Field(description="SHA-256 of the exact request body without its seed")
    status: Literal["judged", "abstained"]
    dimensions: dict[DimensionName, DimensionScore] = Field(default_factory=dict)
    reasons: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=22)
    kept: bool = Field(False, description="whether prompt and raw replies were stored; retention removes them later")
    usage: Usage = Usage()


class SegmentScores(Contract):
    """Commit object of `scores.ready`: the one outcome of a segment under one rubric version."""

    schema_version: Literal[1] = 1
    run: RunId
    epoch: Epoch
    episode: EpisodeId
    segment: SegmentId
    segment_key: str = Field(max_length=512)
    segment_digest: Digest
    rubric: RubricVersion
    status: ScoreStatus
    judges: list[JudgeResult] = Field(default_factory=list, max_length=8)
    phase: str | None = Field(None, max_length=40, description="phase of the game whose weights were used")
    weights: dict[DimensionName, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    weighted: float | None = Field(
        None, ge=0, le=1, description="weighted mean over judged dimensions; None unless judged"
    )
    agreement: float | None = Field(None, ge=0, le=1, description="share of judged dimensions with unanimous votes")
    gated: dict[JudgeName, list[Annotated[str, Field(max_length=100)]]] = Field(
        default_factory=dict, max_length=16, description="judges whose results do not count, with the reasons"
    )
    error: str | None = Field(None, max_length=500, description="why the segment is dead")
    created: AwareDatetime


class JudgeReplies(Contract):
    """One prompt and all replies to it, kept for people: no service reads it.

    The object's name is the SHA-256 of the prompt with its pictures.
    """

    judge: JudgeName
    prompt: dict[str, Any] = Field(description="the request body without seed; pictures are replaced by their SHA-256")
    replies: list[Annotated[str, Field(max_length=MAX_REPLY)]] = Field(max_length=100)

    def pack(self) -> bytes:
        """The document as gzip. Equal content gives equal bytes."""
        return gzip.compress(self.to_bytes(), mtime=0)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Read what `pack` wrote; ContractError if it is damaged or too large."""
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                text = file.read(MAX_REPLIES_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ContractError(f"not a gzip file: {error}") from error
        if len(text) > MAX_REPLIES_BYTES:
            raise ContractError(f"replies unpack to more than {MAX_REPLIES_BYTES} bytes")
        return cls.from_bytes(text)

    @property
    def question(self) -> str:
        """The texts of the last message: what the judge read about the segment."""
        content = self.prompt.get("messages", [{}])[-1].get("content", "")
        return content if isinstance(content, str) else "\n".join(part["text"] for part in content if "text" in part)


def counted_results(scores: SegmentScores) -> list[JudgeResult]:
    """The results behind the weighted score: those of judges that are not gated."""
    return [result for result in scores.judges if result.judge not in scores.gated]


def values_of(results: Iterable[JudgeResult]) -> dict[DimensionName, float]:
    """Value per dimension over all judges. A dimension with several judges counts by its mean."""
    found: dict[DimensionName, list[float]] = {}
    for result in results:
        for name, score in result.dimensions.items():
            found.setdefault(name, []).append(score.value)
    return {name: sum(values) / len(values) for name, values in found.items()}
