"""Environments wait for models only while that is worth it: an absent model costs a few waits, not a share of a run."""

from hypothesis import given
from hypothesis import strategies as st

from services.trainer.domain.wait_gate import FIRST_PAUSE_S, MAX_PAUSE_S, MAX_TRIAL_S, WaitGate


def test_each_late_answer_doubles_the_pause() -> None:
    gate, now, pauses = WaitGate(), 0.0, []
    for _ in range(8):
        assert gate.admit(now)
        gate.record_late(now)
        begun = now
        while not gate.is_open(now):
            now += 1
        pauses.append(now - begun)
    assert pauses == [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]


def test_an_answer_in_time_opens_the_gate() -> None:
    gate = WaitGate()
    gate.record_late(0)
    assert not gate.is_open(FIRST_PAUSE_S - 1)
    gate.record_in_time()
    assert gate.is_open(0)
    gate.record_late(5)
    assert not gate.is_open(5 + FIRST_PAUSE_S - 1)
    assert gate.is_open(5 + FIRST_PAUSE_S)


def test_one_environment_waits_on_trial_until_the_model_is_trusted() -> None:
    gate = WaitGate()
    assert [gate.admit(0), gate.admit(0), gate.admit(1)] == [True, False, False]
    gate.end_trial()
    assert gate.admit(2), "a refusal is no verdict"
    gate.record_in_time()
    assert [gate.admit(3), gate.admit(3)] == [True, True]
    for now in (8.0, 8.0, 8.1):
        gate.record_late(now)
    assert not gate.admit(8 + FIRST_PAUSE_S - 1)
    assert [gate.admit(8 + FIRST_PAUSE_S), gate.admit(8 + FIRST_PAUSE_S)] == [True, False], "together they count once"


def test_trial_of_an_episode_that_ended_blocks_for_a_limited_time() -> None:
    gate = WaitGate()
    assert gate.admit(0)
    assert not gate.admit(MAX_TRIAL_S - 1)
    assert gate.admit(MAX_TRIAL_S)


@given(st.lists(st.floats(0, 30), max_size=200))
def test_waits_for_an_absent_model_take_a_small_share_of_the_time(gaps: list[float]) -> None:
    """Whenever the gate is open, an environment waits 5 s in vain."""
    gate, now, waited = WaitGate(), 0.0, 0.0
    for gap in gaps:
        now += gap
        if gate.admit(now):
            now, waited = now + 5, waited + 5
            gate.record_late(now)
    assert waited <= 5 * (2 + now / FIRST_PAUSE_S)
    assert MAX_PAUSE_S >= FIRST_PAUSE_S
