"""The input of every judge: one segment's facts and key frames."""

from dataclasses import dataclass

from services.judge.domain.facts.summary import Facts
from shared.contracts.ids import RunId, SegmentId


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """One segment as the judges see it. `frames` are PNG files in order of time."""

    run: RunId
    segment: SegmentId
    facts: Facts
    guidance: str
    frames: tuple[bytes, ...]
