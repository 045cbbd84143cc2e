"""A complete segment as it was gathered, until it is decided whether it is recorded."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from services.trainer.domain.sampling import Candidate, Reason
from services.trainer.env.buffers import SegmentBuffer
from services.trainer.env.draft import Draft
from services.trainer.env.outbox import Parcel
from services.trainer.env.tray import Buffer

if TYPE_CHECKING:
    from services.trainer.env.game_session import GameSession


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an episode stands at one end of a segment."""

    milestones: int
    tiles: int
    terms: dict[str, float]

    @classmethod
    def of(cls, player: "GameSession") -> Self:
        """Where it stands now."""
        return cls(player.milestones, player.trace.tiles, player.term_sums)


@dataclass(slots=True)
class Open:
    """The segment being gathered."""

    index: int
    first_step: int
    start: Standing
    buffer: SegmentBuffer
    key_frames: list[int] = field(default_factory=lambda: [0])


@dataclass(frozen=True, slots=True)
class Finished:
    """A complete segment about which has not been decided. `actions` are its episode's, and may grow."""

    segment: Open
    steps: int
    end: Standing
    terminated: bool
    about: dict[str, Any]
    actions: bytearray
    packed_start: bytes

    @property
    def name(self) -> str:
        """Unique within the run; the writer checks that it is an id."""
        return f"{self.about['episode']}-s{self.segment.index:03d}"

    def candidate(self, disagreement: float | None) -> Candidate:
        """What the sampler decides by; `disagreement` is the reward model's doubt."""
        start, end = self.segment.start, self.end
        return Candidate(
            segment=self.name,
            level=start.milestones,
            gained=end.milestones - start.milestones,
            novelty=(end.tiles - start.tiles) / self.steps,
            disagreement=disagreement,
        )

    def parts(self, draft: Draft) -> tuple[Buffer, ...]:
        """All of it but the pictures: those of the draft, actions, prefix, start state."""
        first, after = self.segment.first_step, self.segment.first_step + self.steps
        return *draft.parts(), bytes(self.actions[first:after]), bytes(self.actions[:first]), self.packed_start

    def parcel(self, reason: Reason) -> Parcel:
        """What the writer is to make an archive of, and why."""
        segment, start, end = self.segment, self.segment.start, self.end
        facts = {
            **self.about,
            "segment": self.name,
            "index": segment.index,
            "first_step": segment.first_step,
            "steps": self.steps,
            "key_frames": segment.key_frames,
            "milestones_start": start.milestones,
            "milestones_end": end.milestones,
            "reward_terms": {key: value - start.terms.get(key, 0.0) for key, value in end.terms.items()},
            "terminated": self.terminated,
            "sampled": reason,
            "created": datetime.now(UTC).isoformat(),
        }
        return Parcel(facts, segment.buffer)
