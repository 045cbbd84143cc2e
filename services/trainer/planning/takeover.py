"""One environment's takeovers: asks the switch who acts, the planner for a plan, and the executor for its actions.

While a plan is being made the policy acts, or the environment stands still for as long as its planner allows. A plan
that is wrong, late, impossible or of another room returns control to the policy.
"""

from collections import Counter, deque
from collections.abc import Collection
from typing import Final

from services.trainer.domain.assistance import takeover_fact
from services.trainer.domain.policy_switch import Mode, PolicySwitch, SwitchLimits, SwitchReading
from services.trainer.executor.executor import Executor
from services.trainer.executor.macros import Macro
from services.trainer.executor.outcome import TILES, GameView
from services.trainer.planning.plan import NoPlan, PlanMaker
from services.trainer.planning.puzzle_room import is_open
from shared.contracts.driver import ENDINGS, NEEDS, Ending, Need
from shared.game.decoding.state import GameState, Scene
from shared.game.recording.segment import GUIDANCE, PLANNER, POLICY

NOWHERE: Final = (-1, -1)  # the room of a question that was not asked
LATE_STEPS: Final = 90  # steps until a plan is late, about 6 s of play


class Takeover:
    """Chooses each action of one environment; see `GameSession.takeover`."""

    def __init__(
        self,
        planner: PlanMaker,
        limits: SwitchLimits,
        needs: Collection[Need],
        *,
        outdoors: bool,
        late: int = LATE_STEPS,
    ) -> None:
        """`needs` are what the planner is asked about; `outdoors` says whether puzzles are recognised there."""
        self._planner, self._limits = planner, limits
        self._dialogs, self._puzzles = "dialog" in needs, "puzzle" in needs
        self._outdoors, self._late = outdoors, late
        self._macros: deque[Macro] | None = None
        self._fallback: tuple[Macro, ...] = ()
        self._executor: Executor | None = None
        self._asked, self._waiting = False, 0
        self._scene: Scene | None = None
        self._tiles, self._reading = b"", SwitchReading(None, None, 0)
        self.begin()

    def begin(self) -> None:
        """An episode begins: the policy acts, and the counts start again."""
        self.switch = PolicySwitch(self._limits)
        self.actor = POLICY
        self.outcomes: Counter[str] = Counter()
        self.steps = self.planned = self.waited = self.held = self._number = 0
        self._looked = False
        self._drop()

    def holds(self, state: GameState, image: bytes) -> bool:
        """Whether the environment makes no step now, because its plan is being made and it may wait."""
        if self._look(state, image) != "planner" or self._macros is not None or not self._planner.waits():
            return False
        self.held += 1
        return True

    def choose(self, state: GameState, image: bytes, action: int) -> int:
        """Return the action to execute instead of the policy's `action`, and set `actor`."""
        mode = self._look(state, image)
        self._looked = False
        self.steps += 1
        chosen = self._planned(GameView(state, image)) if mode == "planner" else None
        if chosen is None:
            self.actor = GUIDANCE if mode == "guidance" else POLICY
            return action
        self.actor = PLANNER
        self.planned += 1
        return chosen

    @property
    def decided(self) -> bool:
        """See ActionSource."""
        return self.actor != PLANNER

    @property
    def macro(self) -> Macro | None:
        """The macro that is being carried out, or None."""
        return None if self._executor is None else self._executor.macro

    def facts(self) -> dict[str, float]:
        """The episode's figures so far, for its summary."""
        switch = self.switch
        return {
            "planner_steps_share": self.planned / max(1, self.steps),
            "planner_wait_steps": float(self.waited),
            "plans_late": float(self.outcomes["late"]),
            "plans_missing": float(self.outcomes["no_plan"]),
            "takeovers": float(switch.takeovers),
            **{takeover_fact(need, ending): float(self._ended(need, ending)) for need in NEEDS for ending in ENDINGS},
        }

    def _ended(self, need: Need, ending: Ending) -> int:
        """Takeovers that ended so. The present one counts as cut: the facts are of an episode that ends now."""
        cut = ending == "cut" and self.switch.need == need
        return self.switch.endings[need, ending] + cut

    def _look(self, state: GameState, image: bytes) -> Mode:
        """Take the reading of this step, once, however often the environment stands still in it. Returns who acts."""
        switch = self.switch
        if self._looked:
            return switch.mode
        self._looked = True
        if state.scene is not self._scene or image[TILES] != self._tiles:
            self._read(GameView(state, image))
        mode = switch.step(self._reading)
        if self._asked and (self._number != switch.takeovers or mode != "planner"):
            self._drop()
        if mode == "planner" and not self._asked and switch.need is not None:
            self._planner.ask(GameView(state, image), switch.need)
            self._asked, self._number, self._room = True, switch.takeovers, state.key
        return mode

    def _read(self, view: GameView) -> None:
        """The scene or the room's tiles changed: read what the steps from here on show."""
        state = view.state
        self._scene, self._tiles = state.scene, view.tiles
        dialog = state.dialog is not None if self._dialogs else None
        puzzle = is_open(view, self._outdoors) if self._puzzles else None
        self._reading = SwitchReading(dialog, puzzle, state.inventory.health)

    def _planned(self, view: GameView) -> int | None:
        """The planner's action; None while there is no plan."""
        if self._macros is None and not self._take_plan(view):
            return None
        return self._run(view)

    def _take_plan(self, view: GameView) -> bool:
        """Take the planner's answer. False without a plan: not yet, too late, or none at all."""
        plan = self._planner.answer()
        if plan is None:
            self.waited += 1
            self._waiting += 1
            if self._waiting > self._late:
                self.outcomes["late"] += 1
                self.switch.give_up()
            return False
        if isinstance(plan, NoPlan) or view.state.key != self._room:
            self.outcomes["no_plan"] += 1
            self.switch.give_up()
            return False
        self._macros, self._fallback = deque(plan.macros), plan.fallback
        return True

    def _run(self, view: GameView) -> int | None:
        """The next action of the plan. The plan's end, or its failure, returns control to the policy."""
        macros = self._macros or deque()
        while True:
            if self._executor is None:
                if not macros:
                    self.switch.finish()
                    return None
                self._executor = Executor(macros.popleft(), view)
            action = self._executor.next(view)
            if action is not None:
                return action
            outcome = "unknown" if self._executor.result is None else self._executor.result.outcome
            self.outcomes[outcome] += 1
            self._executor = None
            if outcome == "done":
                continue
            if outcome == "hp_drop" or not self._fallback:
                self.switch.give_up()
                return None
            self._macros = macros = deque(self._fallback)
            self._fallback = ()

    def _drop(self) -> None:
        """Forget the plan: its takeover has ended."""
        self._asked, self._waiting, self._room = False, 0, NOWHERE
        self._macros, self._fallback, self._executor = None, (), None
