"""One environment's guidance: asks about drawn states, shows fresh suggestions, pays for following them.

A suggestion belongs to the state that it was asked about. It is shown only in that room, within the time limit of its
kind in seconds of play, and only after it came: so nothing is paid for an action already taken. The environment goes on
meanwhile, or stands still for as long as the run allows.
"""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.wait_gate import WaitGate
from services.trainer.executor.outcome import GameView
from services.trainer.guidance.alignment_bonus import AlignmentBonus
from services.trainer.guidance.picture import jpeg
from services.trainer.guidance.questions_in_flight import QuestionsInFlight
from services.trainer.guidance.schedule import AskingSchedule, SuggestionKind
from services.trainer.planning.model_reply import SuggestedAction, read_suggestion
from services.trainer.planning.question import ModelAnswer, PacedAnswers, Question, finished, seed_of
from services.trainer.planning.room_facts import facts_json
from services.trainer.planning.takeover import Takeover
from shared.contracts.run import GuidanceConfig
from shared.game.decoding.state import GameState, RoomKey
from shared.game.observation.with_guidance import suggestion_features
from shared.llm.json_reply import InvalidReply

FRESH_S: Final[dict[SuggestionKind, float]] = {"text": 15.0, "vision": 60.0}
"""How long a suggestion is of use, in seconds: of the clock until it comes, and of play since its state."""
FRAMES_PER_S: Final = 60
FACTS: Final = ("asked", "skipped", "shown", "stale", "missing", "taken")


class EpisodeIdentity(NamedTuple):
    """Which episode runs."""

    epoch: int
    name: str
    seed: tuple[int, ...]
    """Run, runner, environment, number."""


@dataclass(slots=True)
class AskedState:
    """A question in flight, or a suggestion, and the state that it belongs to."""

    kind: SuggestionKind
    future: "Future[ModelAnswer]"
    step: int
    room: RoomKey
    asked_at: float
    may_wait: bool
    found: SuggestedAction | None = None


class Guide:
    """The guidance of one environment; GameSession calls it where `next_step` allows no rest."""

    def __init__(
        self,
        answers: PacedAnswers,
        config: GuidanceConfig,
        takeover: Takeover,
        shared: tuple[QuestionsInFlight, WaitGate],
        identity: Callable[[], EpisodeIdentity],
        frame_skip: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`takeover` knows who acts: no suggestion is shown while a planner does. `shared` is the process's."""
        self._answers, self._config, self._takeover = answers, config, takeover
        self._in_flight, self._gate = shared
        self._identity, self._clock = identity, clock
        self._fresh_steps = {kind: int(limit * FRAMES_PER_S / frame_skip) for kind, limit in FRESH_S.items()}
        self._asked: AskedState | None = None
        self._shown: AskedState | None = None

    def begin(self, step: int) -> None:
        """Guide an episode from this step on: nothing is shown, and earlier questions are forgotten."""
        config = self._config
        self._episode = self._identity()
        self._schedule = AskingSchedule(self._episode.seed, config.text_share, config.vision_share)
        self.bonus = AlignmentBonus(config.bonus_share)
        self.counts: Counter[str] = Counter()
        self._step, self._asked, self._shown, self._drawn = step, None, None, False
        self._draw()

    def _draw(self) -> None:
        """Draw the next step that is asked about."""
        drawn = self._schedule.next()
        self._due, self._kind = self._step + drawn.distance, drawn.kind

    @property
    def next_step(self) -> int:
        """See SuggestionSource."""
        return self._due if self._asked is None and self._shown is None else self._step

    @property
    def paid(self) -> float:
        """The sum of the episode's bonuses."""
        return self.bonus.paid

    def needs_picture(self, step: int) -> bool:
        """Whether this step must be drawn: its state will be asked about with a picture."""
        self._drawn = self._kind == "vision" and step >= self._due and self._may_ask("vision")
        return self._drawn

    def _may_ask(self, kind: SuggestionKind) -> bool:
        """Whether a question could be sent: before its facts and picture are made, which cost more than the rest."""
        return self._asked is None and not self._in_flight.full and self._answers.accepts(kind)

    def holds(self) -> bool:
        """Whether the environment stands still for an answer now. The call that finds it shows it."""
        asked = self._asked
        if asked is None or not asked.may_wait:
            return False
        late = self._clock() - asked.asked_at >= self._config.wait_s
        if late and not asked.future.done():
            asked.may_wait = False
            self._gate.record_late(self._clock())
            return False
        answer = finished(asked.future)
        if answer is not None:
            asked.may_wait = False
            if answer.status == "answered":
                self._gate.record_in_time()
            else:
                self._gate.end_trial()
            self._take(asked.room)
        return True

    def pay(self, action: int, episode_return: float, *, by_policy: bool) -> float:
        """The bonus for the action that is about to be made, chosen while the present suggestion was shown."""
        shown = self._shown
        if shown is None or shown.found is None or not by_policy or action != shown.found.action:
            return 0.0
        self._drop()
        self.counts["taken"] += 1
        bonus = self._config.text_bonus if shown.kind == "text" else self._config.vision_bonus
        return self.bonus.pay(bonus, episode_return)

    def settle(self, episode_return: float) -> float:
        """What the end of the episode takes back of the bonuses, 0 or negative."""
        return self.bonus.settle(episode_return)

    def look(self, step: int, state: GameState, image: bytes, picture: Callable[[], NDArray[np.uint8]]) -> None:
        """This step was made: take an answer, end a stale suggestion, and ask about the state if it was drawn."""
        self._step = step
        if self._asked is not None:
            self._take(state.key)
        if self._shown is not None:
            self._check(self._shown, state.key)
        if step >= self._due:
            if state.control:
                self._ask(self._kind, GameView(state, image), picture)
            self._draw()

    def _check(self, shown: AskedState, room: RoomKey) -> None:
        """End a suggestion that is of no use any more."""
        guided = self._takeover.switch.mode == "guidance"
        if not (guided and self._is_fresh(shown, room)):
            self._drop()

    def features(self) -> NDArray[np.float32] | None:
        """What the observation shows of the present suggestion; None without one."""
        shown = self._shown
        if shown is None or shown.found is None:
            return None
        left = 1.0 - (self._step - shown.step) / self._fresh_steps[shown.kind]
        return suggestion_features(shown.found.action, left, shown.found.confidence)

    def facts(self) -> dict[str, float]:
        """The episode's figures so far, for its summary."""
        return {f"suggestions_{name}": float(self.counts[name]) for name in FACTS}

    def _ask(self, kind: SuggestionKind, view: GameView, picture: Callable[[], NDArray[np.uint8]]) -> None:
        undrawn = kind == "vision" and not self._drawn
        if undrawn or not self._may_ask(kind) or not self._in_flight.take():
            self.counts["skipped"] += 1
            return
        self.counts["asked"] += 1
        now, episode = self._clock(), self._episode
        question = Question(
            mode=kind,
            facts=facts_json(view, puzzle=False),
            epoch=episode.epoch,
            place=f"{episode.name}/{self._step}",
            seed=seed_of(kind, episode.epoch, episode.name, self._step),
            picture=jpeg(picture()) if kind == "vision" else None,
        )
        future = self._answers.submit(question)
        may_wait = self._config.wait_s > 0 and self._gate.admit(now)
        self._asked = AskedState(kind, future, self._step, view.state.key, now, may_wait)
        future.add_done_callback(lambda _: self._in_flight.release())

    def _take(self, room: RoomKey) -> None:
        """Take the answer if it came, and show its suggestion if that is of use here and now."""
        asked = self._asked
        answer = None if asked is None else finished(asked.future)
        if asked is None or answer is None:
            return
        self._asked = None
        asked.found = _suggestion(answer)
        if asked.found is None:
            self.counts["missing"] += 1
        elif not self._in_time(asked) or not self._is_fresh(asked, room) or not self._takeover.switch.begin_guidance():
            self.counts["stale"] += 1
        else:
            self.counts["shown"] += 1
            self._shown = asked

    def _in_time(self, asked: AskedState) -> bool:
        return self._clock() - asked.asked_at <= FRESH_S[asked.kind]

    def _is_fresh(self, asked: AskedState, room: RoomKey) -> bool:
        return room == asked.room and self._step - asked.step < self._fresh_steps[asked.kind]

    def _drop(self) -> None:
        self._shown = None
        self._takeover.switch.end_guidance()


def _suggestion(answer: ModelAnswer) -> SuggestedAction | None:
    """The suggestion of an answer; None without a valid one."""
    if answer.status != "answered":
        return None
    try:
        return read_suggestion(answer.text)
    except InvalidReply:
        return None  # counted as missing
