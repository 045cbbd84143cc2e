"""Measures the models of a planner file: in situations of each mode, and with texts that give the planner orders."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, islice, zip_longest
from typing import Final

from services.trainer.executor.macros import GRAMMAR
from services.trainer.planning.planner_file import PlannerFile
from services.trainer.planning.question import AnswerSource
from services.trainer.planning.rules_planner import RulesPlanner
from shared.contracts.driver import NEEDS, QUESTION_MODES, QuestionMode
from shared.game.emulator.start import StartState
from studies.plans.figures import ModeFigures, OrdersFigures, mode_figures, orders_figures
from studies.plans.models import TextShown
from studies.plans.play import PlayedAnswer, play_plan, play_suggestion, take_over
from studies.plans.situations import Situation, Stage, candidates

Report = Callable[[str, PlayedAnswer], None]
"""Told of each answer: what was measured, and what came of it."""
_GRAMMAR: Final = re.compile(GRAMMAR)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A situation and its state."""

    situation: Situation
    start: StartState


def order_texts() -> list[str]:
    """Texts of a game that give the planner orders."""
    return files("studies.plans").joinpath("injections.txt").read_text("utf-8").splitlines()


class Measurement:
    """Plays situations on a stage with answers of these models."""

    def __init__(self, stage: Stage, models: AnswerSource, report: Report) -> None:
        self._stage, self._models, self._report = stage, models, report
        self._plain: dict[str, PlayedAnswer] = {}

    def mode(self, mode: QuestionMode, situations: list[Prepared]) -> ModeFigures:
        """Ask in each of them."""
        return mode_figures([self._played(mode, one) for one in situations])

    def orders(self, situations: list[Prepared], texts: list[str]) -> OrdersFigures:
        """Show each text in one situation, in turns, and compare with the same situation without it."""
        chosen = [situations[place % len(situations)] for place in range(len(texts))]
        without = [self._played(one.situation.mode, one) for one in chosen]
        ordered = [self._ordered(one, text) for one, text in zip(chosen, texts, strict=True)]
        outside = sum(not _GRAMMAR.fullmatch(macro) for one in ordered for macro in one.carried_out)
        return orders_figures(without, ordered, outside)

    def _played(self, mode: QuestionMode, one: Prepared) -> PlayedAnswer:
        name = one.situation.name
        if name not in self._plain:
            self._plain[name] = self._play(mode, one, self._models)
            self._report(mode, self._plain[name])
        return self._plain[name]

    def _ordered(self, one: Prepared, text: str) -> PlayedAnswer:
        found = self._play(one.situation.mode, one, TextShown(self._models, text))
        self._report("orders", found)
        return found

    def _play(self, mode: QuestionMode, one: Prepared, models: AnswerSource) -> PlayedAnswer:
        session = self._stage.session(one.situation.world)
        if mode == "dialog" or mode == "puzzle":
            return play_plan(session, one.start, mode, models)
        return play_suggestion(session, one.start, models, picture=mode == "vision")


def prepare(stage: Stage, mode: QuestionMode, most: int) -> list[Prepared]:
    """The first situations of this mode that the game shows. Of plans, only those in which the rules succeed count."""

    def usable() -> Iterator[Prepared]:
        for situation in candidates(mode):
            start = stage.make(situation)
            if start is not None and _solvable(stage, situation, start):
                yield Prepared(situation, start)

    return list(islice(usable(), most))  # it makes and solves no situation more


def _solvable(stage: Stage, situation: Situation, start: StartState) -> bool:
    """Whether the planner without a model succeeds here: then a plan exists."""
    mode = situation.mode
    if mode != "dialog" and mode != "puzzle":
        return True
    return take_over(stage.session(situation.world), start, mode, RulesPlanner())[1]


def measure(
    stage: Stage, models: AnswerSource, file: PlannerFile, most: int, texts: list[str], report: Report
) -> tuple[dict[QuestionMode, ModeFigures], OrdersFigures | None]:
    """Measure every mode that the file has a route for, `most` situations each."""
    modes = [mode for mode in QUESTION_MODES if mode in file.routes]
    prepared = {mode: prepare(stage, mode, most) for mode in modes}
    measurement = Measurement(stage, models, report)
    found = {mode: measurement.mode(mode, prepared[mode]) for mode in modes}
    turns = zip_longest(*(prepared[need] for need in NEEDS if need in prepared))
    mixed = [one for one in chain.from_iterable(turns) if one is not None]
    return found, measurement.orders(mixed, texts) if mixed and texts else None
