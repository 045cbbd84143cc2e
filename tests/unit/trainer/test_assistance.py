"""Sums of an epoch's takeovers and suggestions from its episodes' facts."""

from services.trainer.domain.assistance import epoch_assistance, takeover_fact
from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.domain.policy_switch import PolicySwitch, SwitchLimits, SwitchReading
from shared.contracts.driver import ModelCalls


def episode(number: int, **facts: float) -> EpisodeSummary:
    return EpisodeSummary(f"e{number}", 300, 1.0, facts={"rooms": 2.0, **facts})


def test_an_epoch_without_help_has_no_sums() -> None:
    assert epoch_assistance([], {}) is None
    assert epoch_assistance([episode(0), episode(1)], {}) is None


def test_takeovers_are_summed_by_need_and_ending() -> None:
    finished, cut = takeover_fact("dialog", "finished"), takeover_fact("puzzle", "cut")
    found = epoch_assistance(
        [episode(0, takeovers=3, **{finished: 2, cut: 1}), episode(1, takeovers=1, **{finished: 1})], {}
    )
    assert found is not None
    assert found.takeovers["dialog"]["finished"] == 3
    assert found.takeovers["puzzle"]["cut"] == 1
    assert sum(count for endings in found.takeovers.values() for count in endings.values()) == 4
    assert (found.suggestions, found.calls) == ({}, {}), "the run has no guidance and asks no model"


def test_each_suggestion_has_one_outcome() -> None:
    counts = {"asked": 9, "skipped": 2, "shown": 5, "taken": 3, "stale": 1, "missing": 3}
    found = epoch_assistance(
        [episode(0, **{f"suggestions_{name}": float(count) for name, count in counts.items()})], {}
    )
    assert found is not None
    assert found.suggestions == {"taken": 3, "not_taken": 2, "stale": 1, "missing": 3, "skipped": 2}


def test_calls_are_reported_before_the_first_episode_ends() -> None:
    calls = ModelCalls(outcomes={"unavailable": 2}, breaker="open")
    found = epoch_assistance([], {"puzzle": calls})
    assert found is not None
    assert found.calls == {"puzzle": calls}


def test_every_takeover_of_a_switch_has_one_ending() -> None:
    switch = PolicySwitch(SwitchLimits(hysteresis=1, dialog_steps=2, cool_down=0))
    for dialog in (True, True, True, True, False):
        switch.step(SwitchReading(dialog, False, 12))
    assert switch.takeovers == sum(switch.endings.values()) + (switch.mode == "planner")
    assert switch.endings["dialog", "timeout"] >= 1
