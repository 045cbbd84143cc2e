"""A question to a model, its answer, and the port through which an environment asks. Nothing here waits.

Both are plain picklable data: they travel between the process that plays and the one that calls models.
"""

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from shared.contracts.driver import QUESTION_MODES, AnswerStatus, QuestionMode

SEEDS: Final = 2**31

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked about one state."""

    mode: QuestionMode
    facts: str
    """The state as compact JSON."""
    epoch: int
    place: str
    """Episode and number of the question within it; with the mode, unique within an epoch of a run."""
    seed: int
    picture: bytes | None = None
    """JPEG of the state."""

    @property
    def digest(self) -> str:
        """SHA-256 of what the model sees, and of the seed: an equal question has an equal digest."""
        parts = (self.mode.encode(), self.facts.encode(), str(self.seed).encode(), self.picture or b"")
        return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's reply, or why it is missing. Before `pause_s` seconds have passed, another question is pointless."""

    status: AnswerStatus
    text: str = ""
    detail: str = ""
    seconds: float = 0.0
    pause_s: float = 0.0


PAUSED: Final = ModelAnswer("paused", detail="the model asked for a pause")


class AnswerSource(Protocol):
    """Where an environment asks. `submit` returns immediately."""

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        """Send the question."""
        ...


class PacedAnswers:
    """Asks no question of a mode while the last answer of that mode demands a pause: an absent model costs nothing."""

    def __init__(self, source: AnswerSource, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._clock = source, clock
        self._not_before: dict[QuestionMode, float] = dict.fromkeys(QUESTION_MODES, 0.0)

    def accepts(self, mode: QuestionMode) -> bool:
        """Whether a question of this mode would be asked now."""
        return self._clock() >= self._not_before[mode]

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        """See AnswerSource. A question within a pause is answered with `paused`."""
        if not self.accepts(question.mode):
            return answered(PAUSED)
        future = self._source.submit(question)
        future.add_done_callback(lambda done: self._learn(question.mode, done))
        return future

    def _learn(self, mode: QuestionMode, done: "Future[ModelAnswer]") -> None:
        """Note the pause that an answer demands; called in any thread."""
        found = finished(done)
        if found is not None and found.pause_s > 0:
            self._not_before[mode] = self._clock() + found.pause_s


def finished(future: "Future[ModelAnswer]") -> ModelAnswer | None:
    """The answer; None while the model thinks. A planning process that ended counts as a model that is away."""
    if not future.done():
        return None
    if future.cancelled():
        return ModelAnswer("unavailable", detail="the question was cancelled")
    error = future.exception()
    if error is None:
        return future.result()
    log.warning("planning process gave no answer", error=str(error)[:200])
    return ModelAnswer("unavailable", detail=f"the planning process ended: {type(error).__name__}", pause_s=5.0)


def answered(answer: ModelAnswer) -> "Future[ModelAnswer]":
    """A future that has this answer already."""
    future: Future[ModelAnswer] = Future()
    future.set_result(answer)
    return future


def seed_of(*parts: object) -> int:
    """A seed from what identifies a question: equal parts give equal seeds in every process."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "big") % SEEDS
