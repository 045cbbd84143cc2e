"""Asks about one situation and carries the answer out, as a run does; a suggestion is tried for one action."""

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from services.trainer.domain.policy_switch import SwitchLimits
from services.trainer.domain.wait_gate import WaitGate
from services.trainer.env.game_session import GameSession
from services.trainer.executor.macros import MacroError, parse_macro
from services.trainer.executor.outcome import WAIT, GameView
from services.trainer.guidance.picture import jpeg
from services.trainer.planning.model_planner import ModelPlanner
from services.trainer.planning.model_reply import read_plan, read_suggestion
from services.trainer.planning.plan import Plan, PlanMaker
from services.trainer.planning.puzzle_room import SOLVED
from services.trainer.planning.question import AnswerSource, ModelAnswer, PacedAnswers, Question, finished, seed_of
from services.trainer.planning.room_facts import facts_json
from services.trainer.planning.takeover import Takeover
from shared.contracts.driver import Ending, Need, QuestionMode
from shared.contracts.run import PlannerConfig
from shared.game.decoding.state import GameState, RoomKey
from shared.game.emulator.start import StartState
from shared.llm.json_reply import InvalidReply, read_object

LIMITS: Final = SwitchLimits(cool_down=10_000)
SETTLING: Final = 40  # steps after a plan until its effect must show
TRIED: Final = 4  # steps of a suggested action; a step walks 4 pixels, and a sign opens within them
SEED_WORD: Final = 1


class Overheard:
    """Passes questions on and keeps the newest answer; see AnswerSource."""

    def __init__(self, models: AnswerSource) -> None:
        self._models = models
        self.answer: ModelAnswer | None = None

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        """Ask."""
        future = self._models.submit(question)
        self.answer = finished(future)
        return future


@dataclass(frozen=True, slots=True)
class PlayedAnswer:
    """What an answer was, and what came of it. `named` and `in_grammar` count the macros of a plan's reply."""

    situation: str
    valid: bool
    success: bool
    seconds: float
    named: int = 0
    in_grammar: int = 0
    carried_out: tuple[str, ...] = ()
    ending: Ending | None = None


def play_plan(session: GameSession, start: StartState, need: Need, models: AnswerSource) -> PlayedAnswer:
    """One takeover from this state, with a plan of the models."""
    heard = Overheard(models)
    config = PlannerConfig(mode="model", wait_s=0)
    planner = ModelPlanner(PacedAnswers(heard), WaitGate(), config, lambda: (0, start.name))
    ending, success, begun = take_over(session, start, need, planner)
    answer = heard.answer or ModelAnswer("unavailable", detail="no question was asked")
    named = _named(answer.text)
    return PlayedAnswer(
        situation=start.name,
        valid=answer.status == "answered" and isinstance(read_plan(answer.text), Plan),
        success=success,
        seconds=answer.seconds,
        named=len(named),
        in_grammar=sum(_is_macro(one) for one in named),
        carried_out=begun,
        ending=ending,
    )


def take_over(
    session: GameSession, start: StartState, need: Need, planner: PlanMaker
) -> tuple[Ending | None, bool, tuple[str, ...]]:
    """Play one takeover: how it ended, whether the dialog was read or the puzzle solved, and the macros begun."""
    takeover = Takeover(planner, LIMITS, [need], outdoors=True)
    session.takeover = takeover
    session.begin(start, SEED_WORD)
    room, begun, last = session.state.key, [], None
    for _ in range(LIMITS.steps_of(need) + SETTLING):
        session.step(WAIT)
        macro = takeover.macro
        if macro is not None and macro is not last:
            begun.append(str(macro))
        last = macro
        if takeover.switch.ending is not None:
            break
    session.takeover = None
    for _ in range(SETTLING):
        if _reached(session.state, need, room):
            return takeover.switch.ending, True, tuple(begun)
        session.step(WAIT)
    return takeover.switch.ending, False, tuple(begun)


def play_suggestion(session: GameSession, start: StartState, models: AnswerSource, *, picture: bool) -> PlayedAnswer:
    """Ask for one action at this state. It succeeds if the game then differs from one in which the hero waited."""
    session.takeover = None
    session.begin(start, SEED_WORD)
    drawn = None
    if picture:
        session.emulator.step(WAIT, session.config.frame_skip, True)
        drawn = jpeg(session.picture())
        session.begin(start, SEED_WORD)
    facts = facts_json(GameView(session.state, session.image), puzzle=False)
    mode: QuestionMode = "vision" if picture else "text"
    question = Question(mode, facts, 0, f"{start.name}/0", seed_of(mode, start.name), drawn)
    answer = finished(models.submit(question)) or ModelAnswer("unavailable", detail="the answer is not there")
    try:
        action = read_suggestion(answer.text).action if answer.status == "answered" else None
    except InvalidReply:
        action = None
    success = action is not None and _tried(session, start, action) != _tried(session, start, WAIT)
    return PlayedAnswer(start.name, action is not None, success, answer.seconds)


def _tried(session: GameSession, start: StartState, action: int) -> tuple[object, ...]:
    """What the hero can change, after the action."""
    session.begin(start, SEED_WORD)
    for _ in range(TRIED):
        session.step(action)
    state = session.state
    return state.x, state.y, state.key, state.dialog is not None, state.inventory, state.progress, state.menu


def _reached(state: GameState, need: Need, room: RoomKey) -> bool:
    if need == "dialog":
        return state.dialog is None
    return bool(state.progress.room(*room) & SOLVED)


def _named(text: str) -> list[object]:
    """Everything that a reply names as a macro, also in a reply that is no plan."""
    try:
        reply = read_object(text)
    except InvalidReply:
        return []
    lists = [reply.get(name) for name in ("macros", "fallback")]
    return [one for found in lists if isinstance(found, list) for one in found]


def _is_macro(value: object) -> bool:
    try:
        return isinstance(value, str) and str(parse_macro(value)) != ""
    except MacroError:
        return False
