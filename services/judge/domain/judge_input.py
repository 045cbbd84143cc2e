"""What every judge gets about one segment."""

from dataclasses import dataclass

from services.judge.domain.facts.summary import Facts
from shared.contracts.ids import RunId, SegmentId


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """One segment as the judges meet it."""

    run: RunId
    segment: SegmentId
    facts: Facts
    guidance: str
    frames: tuple[bytes, ...]
