"""Carries out one macro: returns one action a step, and ends with an outcome and a reason."""

from typing import Final, Protocol

from services.trainer.executor.interactions import InteractRoutine, PushRoutine, UseItemRoutine, read_dialog
from services.trainer.executor.macros import Macro, MoveTo, PushBlock, UseItem
from services.trainer.executor.outcome import START, WAIT, GameView, MacroResult, Outcome, RoutineEnd
from services.trainer.executor.walk import LeaveRoomRoutine, WalkRoutine

STEP_LIMIT: Final = 400  # steps of one macro, about 27 s of play; a walk across a large room with detours takes 150


class Routine(Protocol):
    """The steps of one kind of macro."""

    def next(self, view: GameView) -> int | RoutineEnd:
        """The next action, or how it ended."""
        ...


class Executor:
    """One macro being carried out. It aborts when health drops, the room changes or its steps are used up."""

    def __init__(self, macro: Macro, view: GameView, limit: int = STEP_LIMIT) -> None:
        self.macro, self.steps = macro, 0
        self.result: MacroResult | None = None
        self._limit, self._health, self._room = limit, view.state.inventory.health, view.state.key
        self._leaves = isinstance(macro, MoveTo) and not _inside(macro, view)
        self._routine = _routine(macro, view)
        self._in_menu = isinstance(macro, UseItem)
        self._pause = False

    @property
    def outcome(self) -> Outcome:
        """How the macro ended; `unknown` until then."""
        return "unknown" if self.result is None else self.result.outcome

    def next(self, view: GameView) -> int | None:
        """The next action; None when the macro has ended, see `result`."""
        ended = self._abort(view) or self._advance(view)
        if isinstance(ended, RoutineEnd):
            self.result = MacroResult(ended.outcome, ended.detail, self.steps)
            return None
        self.steps += 1
        return ended

    def _abort(self, view: GameView) -> RoutineEnd | None:
        """Why the macro cannot continue, independent of its routine."""
        state = view.state
        if state.inventory.health < self._health or state.dying:
            return RoutineEnd("hp_drop", f"health fell from {self._health} to {state.inventory.health} quarters")
        self._health = state.inventory.health
        if state.key != self._room and not state.transition:
            outcome: Outcome = "done" if self._leaves else "room_change"
            return RoutineEnd(outcome, f"the hero is in room {state.group}:{state.room:02x}")
        if self.steps >= self._limit:
            return RoutineEnd("timeout", f"not finished in {self._limit} steps")
        return None

    def _advance(self, view: GameView) -> int | RoutineEnd:
        """The routine's action; while the game does not listen, wait or read what it says."""
        state = view.state
        if state.dialog is not None and not isinstance(self._routine, InteractRoutine):
            self._pause = not self._pause
            action = read_dialog(view, None, self._pause)
            return RoutineEnd("stuck", "a dialog asks for a decision") if isinstance(action, RoutineEnd) else action
        if state.menu and not self._in_menu:  # left open by the one who acted before
            self._pause = not self._pause
            return WAIT if self._pause else START
        listens = state.control or state.dialog is not None or (state.menu and self._in_menu)
        return self._routine.next(view) if listens else WAIT


def _inside(macro: MoveTo, view: GameView) -> bool:
    column, row = macro.tile
    return 0 <= column < view.state.grid.width // 2 and 0 <= row < view.state.grid.height // 2


def _routine(macro: Macro, view: GameView) -> Routine:
    if isinstance(macro, MoveTo):
        return WalkRoutine(macro.tile) if _inside(macro, view) else _leave(macro, view)
    if isinstance(macro, PushBlock):
        return PushRoutine(macro)
    return UseItemRoutine(macro) if isinstance(macro, UseItem) else InteractRoutine(macro)


def _leave(macro: MoveTo, view: GameView) -> Routine:
    """A tile one step beyond the room leaves it; one further away cannot be reached."""
    try:
        return LeaveRoomRoutine(macro.tile, view.state.grid)
    except ValueError:
        return _Unreachable()


class _Unreachable:
    def next(self, view: GameView) -> int | RoutineEnd:
        return RoutineEnd("stuck", "the tile is not in this room")
