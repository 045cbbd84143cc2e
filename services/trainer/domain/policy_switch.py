"""Decides who acts: the policy, the planner, or the policy under guidance. A pure state machine without a clock.

A takeover begins when a dialog or a puzzle has shown itself in `hysteresis` steps in a row, and ends when it has been
gone for as many, so that a flicker changes nothing. It also ends when the planner gives up, when health falls below
what it was at the takeover's start, and after a number of steps. A cool-down follows every end. A step is one action;
the switch counts nothing else, because the emulator runs faster than any clock expects.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from shared.contracts.driver import Ending, Need

Mode = Literal["policy", "planner", "guidance"]


class SwitchReading(NamedTuple):
    """What one step shows. None means that the game's RAM does not say, which begins no takeover."""

    dialog: bool | None
    puzzle: bool | None
    health: int


@dataclass(frozen=True, slots=True)
class SwitchLimits:
    """All in steps."""

    hysteresis: int = 3
    dialog_steps: int = 300
    puzzle_steps: int = 600
    guidance_steps: int = 30
    cool_down: int = 150

    def steps_of(self, need: Need) -> int:
        """The longest takeover of this kind."""
        return self.dialog_steps if need == "dialog" else self.puzzle_steps


@dataclass(slots=True)
class PolicySwitch:
    """The switch of one environment. Call `step` once per step, before the action is chosen."""

    limits: SwitchLimits = SwitchLimits()
    mode: Mode = "policy"
    need: Need | None = None
    """What the present takeover is for."""
    ending: Ending | None = None
    """How the last takeover ended; None before the first one."""
    takeovers: int = 0
    endings: Counter[tuple[Need, Ending]] = field(default_factory=Counter)
    """Ended takeovers so far, by what they were for and how they ended."""
    _dialog: int = 0  # steps in a row in which it has shown itself
    _puzzle: int = 0
    _gone: int = 0
    _steps: int = 0
    _health: int = 0
    _cool: int = 0

    def step(self, reading: SwitchReading) -> Mode:
        """Take one step's reading and return who acts in it."""
        dialog, puzzle, health = reading
        self._dialog = self._dialog + 1 if dialog else 0
        self._puzzle = self._puzzle + 1 if puzzle else 0
        if self.mode == "planner":
            self._continue(bool(dialog if self.need == "dialog" else puzzle), health)
        elif self._cool > 1 and self.mode == "policy":
            self._cool -= 1  # the rest is for steps that can change the mode: this one runs in every step
        else:
            self._wait(health)
        return self.mode

    def give_up(self) -> None:
        """The planner has no plan, or its plan cannot be carried out: the policy acts from the next step on."""
        if self.mode == "planner":
            self._end("given_up")

    def finish(self) -> None:
        """The planner carried out its whole plan."""
        if self.mode == "planner":
            self._end("finished")

    def begin_guidance(self) -> bool:
        """A suggestion arrived: the policy sees it for a while. False if the planner acts, which needs none."""
        if self.mode == "planner":
            return False
        self.mode, self._steps = "guidance", 0
        return True

    def end_guidance(self) -> None:
        """The suggestion was followed, or is of no use any more."""
        if self.mode == "guidance":
            self.mode = "policy"

    def _wait(self, health: int) -> None:
        """Before a takeover: cool down, end old guidance, begin a takeover that is due."""
        if self._cool:
            self._cool -= 1
        if self.mode == "guidance":
            self._steps += 1
            if self._steps > self.limits.guidance_steps:
                self.mode = "policy"
        if not self._cool and max(self._dialog, self._puzzle) >= self.limits.hysteresis:
            self.need = "dialog" if self._dialog >= self.limits.hysteresis else "puzzle"
            self.mode, self._health = "planner", health
            self._steps = self._gone = 0
            self.takeovers += 1

    def _continue(self, shown: bool, health: int) -> None:
        """Within a takeover: continue it or end it. `shown`: what it is for is still there."""
        need = self.need or "dialog"
        self._steps += 1
        self._gone = 0 if shown else self._gone + 1
        if health < self._health:
            self._end("hp_drop")
        elif self._gone >= self.limits.hysteresis:
            self._end("cleared")
        elif self._steps >= self.limits.steps_of(need):
            self._end("timeout")

    def _end(self, ending: Ending) -> None:
        if self.need is not None:
            self.endings[self.need, ending] += 1
        self.mode, self.need, self.ending = "policy", None, ending
        self._cool = self.limits.cool_down
        self._dialog = self._puzzle = 0
