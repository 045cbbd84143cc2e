"""Collects a segment while its game is played, and builds its archive when the sampler has chosen it.

A step adds two references: game states and observations are immutable, so nothing is copied or encoded before the
archive is built, and nothing of a segment that is not chosen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.sampling import Candidate, Reason
from services.trainer.env.game_session import GameSession
from shared.contracts.base import sha256
from shared.contracts.ids import SegmentId
from shared.contracts.segment import KEY_FRAMES
from shared.game.decoding.state import GameState
from shared.game.emulator.start import StartState
from shared.game.observation import counters
from shared.game.observation.encoder import Observation
from shared.game.recording.png import palette_png
from shared.game.recording.recorded_states import Counts, RecordedStates
from shared.game.recording.segment import Members, pack_state, write_segment
from shared.game.recording.state_rows import StateRowWriter
from shared.store import keys

Picture = NDArray[np.uint32]
"""Packed RGBA pixels, (144, 160)."""


def key_steps(steps: int) -> tuple[int, ...]:
    """The steps after which a picture is taken: before the first action (0), after the last, and evenly between."""
    last = KEY_FRAMES - 1
    return tuple(sorted({round(frame * steps / last) for frame in range(KEY_FRAMES)}))


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """RAM and progress of an episode at one end of a segment."""

    ram: bytes
    milestones: int
    tiles: int
    reward_terms: dict[str, float]

    @classmethod
    def of(cls, session: GameSession) -> Self:
        """Take the present one."""
        return cls(session.emulator.naive_image(), session.milestones, session.trace.tiles, session.term_sums)


@dataclass(slots=True)
class SegmentBuilder:
    """The segment that an environment is playing.

    `observations` and `counters` begin before the first action, `states` after it; `before` is the state before it.
    """

    index: int
    first_step: int
    start: ProgressSnapshot
    before: GameState
    observations: list[Observation]
    counters: list[bytes]
    key_frames: dict[int, Picture]
    states: list[GameState] = field(default_factory=list)

    def add_step(self, session: GameSession) -> int:
        """Append what the session's last step led to; return the number of steps."""
        self.states.append(session.state)
        self.observations.append(session.features)
        self.counters.append(session.counters.packed)
        return len(self.states)


@dataclass(frozen=True, slots=True)
class CompletedSegment:
    """A segment with all of its steps. `prefix` holds the actions of its episode before it.

    `actors` says who chose each action; it is empty without a planner.
    """

    content: SegmentBuilder
    facts: Mapping[str, Any]
    end: ProgressSnapshot
    terminated: bool
    actions: bytes
    prefix: bytes
    start_state: StartState
    actors: bytes = b""

    @classmethod
    def of(
        cls,
        content: SegmentBuilder,
        session: GameSession,
        facts: Mapping[str, Any],
        end: ProgressSnapshot,
        terminated: bool,
    ) -> Self:
        """The segment that ends at the session's present step. `facts` are manifest fields of its episode."""
        episode, first = session.episode, content.first_step
        actions, prefix = bytes(episode.actions[first:]), bytes(episode.actions[:first])
        return cls(content, facts, end, terminated, actions, prefix, episode.start, bytes(episode.actors[first:]))

    @property
    def name(self) -> SegmentId:
        """Unique within the run."""
        return SegmentId(f"{self.facts['episode']}-s{self.content.index:03d}")

    @property
    def key(self) -> str:
        """The archive's key in the store."""
        return keys.segment(self.facts["run"], self.facts["epoch"], self.facts["episode"], self.name)

    def observations(self) -> NDArray[np.float32]:
        """All observations, (steps + 1, 128)."""
        return np.stack(self.content.observations)

    def counters(self) -> Counts:
        """All event counters, uint16 (steps + 1, counters.SIZE)."""
        return np.frombuffer(b"".join(self.content.counters), "<u2").reshape(-1, counters.SIZE)

    def states_in(self, view: str) -> NDArray[np.float32]:
        """All states (steps + 1, D) as a reward model of this view sees them; ContractError if recorded without it."""
        known = self.facts
        states = RecordedStates(
            self.name, known["observation"], self.observations(), known["counters"], self.counters()
        )
        return states.in_view(view)

    def candidate(self, disagreement: float | None) -> Candidate:
        """What the sampler decides by."""
        start, end = self.content.start, self.end
        return Candidate(
            segment=self.name,
            level=start.milestones,
            gained=end.milestones - start.milestones,
            novelty=(end.tiles - start.tiles) / len(self.actions),
            disagreement=disagreement,
        )

    def archive(self, reason: Reason) -> bytes:
        """Build the archive of a segment that was chosen for this reason."""
        return write_segment(
            self._manifest(reason),
            Members(
                lines=self._rows(),
                before=self._row_before(),
                observations=self.observations(),
                counters=self.counters(),
                actions=np.frombuffer(self.actions, np.uint8),
                prefix=np.frombuffer(self.prefix, np.uint8),
                packed_start=pack_state(self.start_state.state),
                actors=np.frombuffer(self.actors, np.uint8) if self.actors else None,
                frames={step: palette_png(picture) for step, picture in self.content.key_frames.items()},
            ),
        )

    def _manifest(self, reason: Reason) -> dict[str, Any]:
        content, start, end = self.content, self.content.start, self.end
        return {
            **self.facts,
            "segment": self.name,
            "index": content.index,
            "first_step": content.first_step,
            "steps": len(self.actions),
            "key_frames": list(content.key_frames),
            "ram_start": sha256(start.ram),
            "ram_end": sha256(end.ram),
            "milestones_start": start.milestones,
            "milestones_end": end.milestones,
            "reward_terms": {name: paid - start.reward_terms.get(name, 0.0) for name, paid in end.reward_terms.items()},
            "terminated": self.terminated,
            "sampled": reason,
            "created": datetime.now(UTC).isoformat(),
        }

    def _rows(self) -> list[str]:
        """Return the lines of states.jsonl: the state after each action."""
        rows, first = StateRowWriter(), self.content.first_step + 1
        return [
            rows.line(state, step, action)
            for step, (state, action) in enumerate(zip(self.content.states, self.actions, strict=True), start=first)
        ]

    def _row_before(self) -> str:
        """Return the row of the state before the first action; it is also the last row of the previous segment."""
        action = self.prefix[-1] if self.prefix else 0
        return StateRowWriter().line(self.content.before, self.content.first_step, action)
