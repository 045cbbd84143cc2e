"""The sampler keeps its budget, never misses a milestone while it lasts, and looks at rare levels more often."""

from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.domain.sampling import WARM_UP, Candidate, Quota, RecentRanks, Sampler
from shared.contracts.run import SamplingConfig


def ordinary(i: int, level: int = 0, **known: float) -> Candidate:
    return Candidate(segment=f"seg-{i}", level=level, gained=0, **known)


def test_with_budget_for_all_every_segment_is_taken() -> None:
    sampler = Sampler(Quota.of(SamplingConfig(share=1.0, budget=200), 30_000, 300, 1), seed=1)
    assert all(sampler.decide(ordinary(i, level=i % 3, novelty=i * 0.1)) for i in range(100))


def test_a_small_budget_lasts_until_the_end_of_the_epoch() -> None:
    sampler = Sampler(Quota(share=1.0, milestones=True, budget=100, expected=1_000), seed=3)
    taken_at = [i for i in range(1_000) if sampler.decide(ordinary(i, novelty=(i * 7919) % 101))]
    assert 90 <= len(taken_at) <= 100
    assert 30 <= sum(i < 500 for i in taken_at) <= 70


def test_a_milestone_is_recorded_even_late_in_the_epoch() -> None:
    sampler = Sampler(Quota(share=1.0, milestones=True, budget=50, expected=1_000), seed=3)
    for i in range(900):
        sampler.decide(ordinary(i))
    assert sampler.decide(Candidate(segment="late", level=0, gained=1)) == "milestone"


def test_a_reserve_that_was_used_is_kept_no_longer() -> None:
    """A quarter of a budget of 8 is reserved for milestones: two of them use it, and six are left for 98 segments."""
    sampler = Sampler(Quota(share=1.0, milestones=True, budget=8, expected=100), seed=3)
    assert sampler.rate() == pytest.approx((8 - 2) / 100)
    for name in ("first", "second"):
        assert sampler.decide(Candidate(segment=name, level=0, gained=1)) == "milestone"
    assert sampler.rate() == pytest.approx(6 / 98)


def test_milestones_can_be_switched_off() -> None:
    sampler = Sampler(Quota(share=0.0, milestones=False, budget=50, expected=100), seed=3)
    assert sampler.decide(Candidate(segment="one", level=0, gained=1)) is None


def test_a_share_of_zero_takes_nothing_however_new_it_is() -> None:
    config = SamplingConfig(share=0.0, milestones=False)
    sampler = Sampler(Quota.of(config, 300_000, 300, 1), seed=0)
    taken = [sampler.decide(ordinary(i, novelty=float(i), disagreement=float(i))) for i in range(1_000)]
    assert not any(taken)
    with_milestones = Sampler(Quota.of(SamplingConfig(share=0.0), 300_000, 300, 1), seed=0)
    decided = [with_milestones.decide(Candidate(f"s-{i}", 0, i == 900, novelty=float(i))) for i in range(1_000)]
    assert Counter(decided) == {None: 999, "milestone": 1}


def test_a_resumed_epoch_spreads_its_remaining_budget_over_remaining_steps() -> None:
    config = SamplingConfig(budget=200)

    def half(steps_to_come: int, recorded: int) -> int:
        sampler = Sampler(Quota.of(config, steps_to_come, 300, 1, recorded), seed=recorded)
        for i in range(500):
            sampler.decide(Candidate(f"half-{recorded}-{i}", 0, 0, novelty=(i * 7919) % 101))
        return sampler.taken.total()

    first = half(300_000, 0)
    assert 60 <= first <= 100
    assert 190 <= first + half(150_000, first) <= 200


@given(budget=st.integers(1, 300), recorded=st.integers(0, 300), runners=st.integers(1, 40))
def test_all_runners_together_may_record_the_budget_and_no_more(budget: int, recorded: int, runners: int) -> None:
    config = SamplingConfig(budget=budget)
    shares = [Quota.of(config, 300_000, 300, runners, recorded, index + 1).budget for index in range(runners)]
    assert sum(shares) == max(0, budget - recorded)
    assert max(shares) - min(shares) <= 1


def test_an_epoch_that_has_its_budget_already_gets_no_segment_more() -> None:
    config = SamplingConfig(budget=200)
    assert Quota.of(config, 300_000, 300, 3, recorded=200).budget == 0
    assert Quota.of(config, 300_000, 300, 3, recorded=250).budget == 0
    assert Quota.of(config, 300_000, 300, 3, recorded=199).budget == 1
    sampler = Sampler(Quota.of(config, 300_000, 300, 1, recorded=200), seed=0)
    assert sampler.decide(Candidate("late", level=0, gained=1)) is None


def test_rare_levels_are_seen_more_often_than_their_share() -> None:
    sampler = Sampler(Quota(share=1.0, milestones=True, budget=200, expected=2_000), seed=5)
    taken: Counter[int] = Counter()
    for i in range(2_000):
        level = 1 if i % 20 == 0 else 0
        taken[level] += sampler.decide(ordinary(i, level)) is not None
    assert taken[1] / 100 > 2 * taken[0] / 1_900


def test_without_milestones_rare_novelty_is_seen_more_often() -> None:
    sampler = Sampler(Quota(share=1.0, milestones=False, budget=200, expected=2_000), seed=5)
    taken: Counter[float] = Counter()
    for i in range(2_000):
        novelty = 0.1 if i % 20 == 0 else 0.5 + i % 7 / 20  # little is rare here, so the rank of novelty is no reason
        taken[novelty == 0.1] += sampler.decide(ordinary(i, novelty=novelty)) == "share"
    assert taken[True] / 100 > 2 * taken[False] / 1_900


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.floats(0, 1)), min_size=30, max_size=200))
def test_without_milestones_the_choice_is_blind_to_them(rows: list[tuple[int, int, float]]) -> None:
    def taken(known: bool) -> list[str | None]:
        sampler = Sampler(Quota(share=0.5, milestones=False, budget=20, expected=100), seed=5)
        return [
            sampler.decide(Candidate(str(i), level * known, gained * known, novelty))
            for i, (level, gained, novelty) in enumerate(rows)
        ]

    assert taken(True) == taken(False)


def test_what_the_reward_model_disagrees_on_comes_first() -> None:
    sampler = Sampler(Quota(share=0.3, milestones=False, budget=300, expected=1_000), seed=7)
    reasons = Counter(
        sampler.decide(ordinary(i, disagreement=(i * 31) % 97, novelty=(i * 17) % 89)) for i in range(1_000)
    )
    assert min(reasons["disagreement"], reasons["novelty"], reasons["share"]) > 50


def test_the_same_epoch_played_again_takes_the_same_segments() -> None:
    def epoch() -> list[str | None]:
        sampler = Sampler(Quota(share=0.5, milestones=True, budget=30, expected=100), seed=9)
        return [sampler.decide(ordinary(i)) for i in range(100)]

    assert epoch() == epoch()


@given(
    budget=st.integers(1, 50),
    expected=st.integers(1, 200),
    share=st.floats(0, 1),
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.floats(-5, 5)), max_size=150),
)
def test_the_budget_is_never_exceeded(
    budget: int, expected: int, share: float, rows: list[tuple[int, int, float]]
) -> None:
    sampler = Sampler(Quota(share=share, milestones=True, budget=budget, expected=expected), seed=0)
    for i, (level, gained, novelty) in enumerate(rows):
        sampler.decide(Candidate(segment=str(i), level=level, gained=gained, novelty=novelty))
    assert sampler.taken.total() <= budget


@given(st.lists(st.floats(-100, 100), min_size=30, max_size=80))
def test_a_value_is_placed_among_the_newest_ones_once_there_are_enough(values: list[float]) -> None:
    ranking, newest = RecentRanks(size=20), deque[float](maxlen=20)
    for value in values:
        lower = sum(other < value for other in newest)
        assert ranking.rank(value) == (lower / len(newest) if len(newest) >= WARM_UP else None)
        newest.append(value)


def test_what_is_new_or_disputed_is_what_has_the_highest_values() -> None:
    sampler = Sampler(Quota(share=0.3, milestones=False, budget=300, expected=1_000), seed=7)
    for i in range(1_000):
        novelty, disagreement = i * 17 % 89, i * 31 % 97
        reason = sampler.decide(ordinary(i, novelty=novelty, disagreement=disagreement))
        if reason != "share":
            assert reason is None or {"novelty": novelty, "disagreement": disagreement}[reason] > 60


def test_ranked_segments_are_part_of_the_share_and_not_beside_it() -> None:
    sampler = Sampler(Quota(share=0.3, milestones=True, budget=1_000, expected=1_000), seed=7)
    taken = [sampler.decide(ordinary(i, disagreement=(i * 31) % 97, novelty=(i * 17) % 89)) for i in range(1_000)]
    assert 260 <= sum(reason is not None for reason in taken) <= 340


def test_a_budget_that_is_just_enough_is_used_whole() -> None:
    sampler = Sampler(Quota(share=1.0, milestones=True, budget=100, expected=100), seed=3)
    assert all(sampler.decide(ordinary(i)) for i in range(100))


def test_a_part_of_the_budget_waits_for_milestones_and_is_given_back() -> None:
    sampler = Sampler(Quota(share=1.0, milestones=True, budget=1_000, expected=10_000), seed=3)
    taken_at = [i for i in range(10_000) if sampler.decide(ordinary(i))]
    assert 380 <= sum(i < 5_000 for i in taken_at) <= 450
    assert 950 <= len(taken_at) <= 1_000


def test_each_runner_has_its_part_of_budget_and_segments() -> None:
    assert Quota.of(SamplingConfig(budget=200), 300_000, 300, 4) == Quota(1.0, True, budget=50, expected=250)


def test_another_seed_takes_other_segments() -> None:
    def epoch(seed: int) -> list[bool]:
        sampler = Sampler(Quota(share=0.5, milestones=False, budget=100, expected=100), seed)
        return [sampler.decide(ordinary(i)) is not None for i in range(100)]

    assert epoch(1) != epoch(2)
