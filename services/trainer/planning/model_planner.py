"""A planner that asks a model: one question per takeover, answered while the game goes on or the environment waits.

The environment that asks may stand still for `wait_s` seconds; the others of its process play on. Without an answer in
time the policy acts, and no environment of the process waits for a while (`WaitGate`).
"""

import time
from collections.abc import Callable
from concurrent.futures import Future

from services.trainer.domain.wait_gate import WaitGate
from services.trainer.executor.outcome import GameView
from services.trainer.planning.model_reply import read_plan
from services.trainer.planning.plan import NoPlan, Plan
from services.trainer.planning.question import PAUSED, ModelAnswer, PacedAnswers, Question, answered, finished, seed_of
from services.trainer.planning.room_facts import facts_json
from shared.contracts.driver import Need
from shared.contracts.run import PlannerConfig


class ModelPlanner:
    """Plans of one environment; see PlanMaker."""

    def __init__(
        self,
        answers: PacedAnswers,
        gate: WaitGate,
        config: PlannerConfig,
        episode: Callable[[], tuple[int, str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`episode` returns the epoch and the name of the running episode; the gate is that of the process."""
        self._answers, self._gate, self._config = answers, gate, config
        self._episode, self._clock = episode, clock
        self._pending: Future[ModelAnswer] | None = None
        self._place, self._number = "", 0
        self._asked_at, self._may_wait = 0.0, False

    def ask(self, view: GameView, need: Need) -> None:
        """Send the question. An earlier one is forgotten."""
        epoch, episode = self._episode()
        self._number = self._number + 1 if episode == self._place else 0
        self._place = episode
        self._may_wait = False
        if not self._answers.accepts(need):  # making the facts of a question costs more than all else here
            self._pending = answered(PAUSED)
            return
        question = Question(
            mode=need,
            facts=facts_json(view, puzzle=need == "puzzle"),
            epoch=epoch,
            place=f"{episode}/{self._number}",
            seed=seed_of(epoch, episode, self._number),
        )
        self._asked_at = self._clock()
        self._may_wait = self._config.wait_s > 0 and self._gate.admit(self._asked_at)
        self._pending = self._answers.submit(question)

    def waits(self) -> bool:
        """Whether the environment stands still for the answer now."""
        if not self._may_wait or self._pending is None or self._pending.done():
            return False
        now = self._clock()
        if now - self._asked_at < self._config.wait_s:
            return True
        self._may_wait = False
        self._gate.record_late(now)
        return False

    def answer(self) -> Plan | NoPlan | None:
        """Return the plan, why it does not exist, or None while the model thinks."""
        answer = None if self._pending is None else finished(self._pending)
        if answer is None:
            return None
        if answer.status != "answered":
            if self._may_wait:  # an environment that was not admitted must not end the trial of another
                self._may_wait = False
                self._gate.end_trial()
            return NoPlan(f"{answer.status}: {answer.detail}")
        if self._clock() - self._asked_at <= self._config.wait_s:
            self._gate.record_in_time()
        plan = read_plan(answer.text)
        if isinstance(plan, Plan) and plan.confidence < self._config.min_confidence:
            return NoPlan(f"unsure: confidence {plan.confidence:g}")
        return plan
