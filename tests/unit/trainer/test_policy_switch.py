"""Who acts, over any history of dialogs, puzzles, lost health and planners that give up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.trainer.domain.policy_switch import PolicySwitch, SwitchLimits, SwitchReading

LIMITS = SwitchLimits(hysteresis=3, dialog_steps=12, puzzle_steps=20, guidance_steps=5, cool_down=7)
FLAGS = st.sampled_from([True, False, None])


def reading(dialog: bool | None = False, puzzle: bool | None = False, health: int = 12) -> SwitchReading:
    return SwitchReading(dialog, puzzle, health)


def modes(switch: PolicySwitch, readings: list[SwitchReading]) -> str:
    return "".join(switch.step(one)[1] for one in readings)  # o policy, l planner, u guidance


class AnyHistory(RuleBasedStateMachine):
    """The properties of the switch hold for every history; the model counts in its own way."""

    def __init__(self) -> None:
        super().__init__()
        self.switch = PolicySwitch(LIMITS)
        self.shown = {"dialog": 0, "puzzle": 0}
        self.gone = self.planned = self.guided = 0
        self.since_end = 1_000
        self.entry_health = 12

    @rule(dialog=FLAGS, puzzle=FLAGS, health=st.integers(0, 12))
    def a_step_passes(self, dialog: bool | None, puzzle: bool | None, health: int) -> None:
        before, need, takeovers = self.switch.mode, self.switch.need, self.switch.takeovers
        flags = {"dialog": dialog is True, "puzzle": puzzle is True}
        if before != "planner":
            self.since_end += 1
        self.shown = {name: count + 1 if flags[name] else 0 for name, count in self.shown.items()}
        after = self.switch.step(reading(dialog, puzzle, health))
        if before != "planner" and after == "planner":
            assert self.switch.takeovers == takeovers + 1
            assert self.shown[self.switch.need or ""] >= LIMITS.hysteresis, "it must show itself three times in a row"
            assert self.since_end >= LIMITS.cool_down
            assert self.switch.need == "dialog" or self.shown["dialog"] < LIMITS.hysteresis, "a dialog comes first"
            self.gone = self.planned = 0
            self.entry_health = health
        elif before == "planner":
            self.planned += 1
            self.gone = 0 if flags[need or ""] else self.gone + 1
            if after == "planner":
                assert self.gone < LIMITS.hysteresis
                assert health >= self.entry_health
                assert self.planned < LIMITS.steps_of(need or "dialog")
            else:
                self.ended()

    @rule(finished=st.booleans())
    def the_planner_ends(self, finished: bool) -> None:
        before = self.switch.mode
        self.switch.finish() if finished else self.switch.give_up()
        assert self.switch.mode != "planner"
        if before == "planner":
            assert self.switch.ending == ("finished" if finished else "given_up")
            self.ended()

    @rule()
    def a_suggestion_arrives(self) -> None:
        before = self.switch.mode
        assert self.switch.begin_guidance() == (before != "planner")

    def ended(self) -> None:
        self.since_end = 0
        self.shown = {"dialog": 0, "puzzle": 0}

    @invariant()
    def a_need_belongs_to_the_planner(self) -> None:
        assert (self.switch.need is not None) == (self.switch.mode == "planner")

    @invariant()
    def no_takeover_ends_twice(self) -> None:
        assert self.switch.takeovers - sum(self.switch.endings.values()) == (self.switch.mode == "planner")


TestAnyHistory = AnyHistory.TestCase


@pytest.mark.parametrize("steps", [1, 2])
def test_flicker_begins_no_takeover(steps: int) -> None:
    switch = PolicySwitch(LIMITS)
    assert modes(switch, ([reading(True)] * steps + [reading()]) * 10) == "o" * 10 * (steps + 1)


def test_takeover_begins_and_ends_with_the_third_step_in_a_row() -> None:
    switch = PolicySwitch(LIMITS)
    assert modes(switch, [reading(True)] * 3 + [reading()] * 2 + [reading(True)] + [reading()] * 3) == "oollllllo"
    assert (switch.ending, switch.endings) == ("cleared", {("dialog", "cleared"): 1})


def test_takeover_ends_after_its_steps_and_cools_down() -> None:
    switch = PolicySwitch(LIMITS)
    shown = [reading(True)] * 60
    assert modes(switch, shown[:14]) == "oo" + "l" * 12
    assert switch.step(shown[0]) == "policy"
    assert switch.ending == "timeout"
    assert modes(switch, shown[:6]) == "o" * 6
    assert switch.step(shown[0]) == "planner", "the cool-down is over and the dialog is still there"


def test_without_a_cool_down_the_need_must_show_itself_again() -> None:
    switch = PolicySwitch(SwitchLimits(hysteresis=3, dialog_steps=2, cool_down=0))
    assert modes(switch, [reading(True)] * 9) == "oolloooll"


def test_lost_health_ends_a_takeover() -> None:
    switch = PolicySwitch(LIMITS)
    assert modes(switch, [reading(puzzle=True)] * 4 + [reading(puzzle=True, health=11)]) == "oollo"
    assert (switch.ending, switch.endings) == ("hp_drop", {("puzzle", "hp_drop"): 1})


def test_unknown_readings_begin_nothing() -> None:
    assert modes(PolicySwitch(LIMITS), [reading(None, None)] * 20) == "o" * 20


def test_guidance_ends_by_itself_and_gives_way_to_a_takeover() -> None:
    switch = PolicySwitch(LIMITS)
    assert switch.begin_guidance()
    assert modes(switch, [reading()] * 7) == "uuuuuoo"
    assert switch.begin_guidance()
    assert modes(switch, [reading(True)] * 4) == "uull"
    assert not switch.begin_guidance()


@given(st.lists(st.tuples(FLAGS, FLAGS, st.integers(0, 12)), max_size=200))
def test_equal_histories_give_equal_modes(history: list[tuple[bool | None, bool | None, int]]) -> None:
    readings = [SwitchReading(*one) for one in history]
    assert modes(PolicySwitch(LIMITS), readings) == modes(PolicySwitch(LIMITS), readings)
