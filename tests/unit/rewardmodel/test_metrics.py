"""The card's figures on cases with known answers; gates, completeness and debounce."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit

from services.rewardmodel.domain.baselines import RIDGE, fit_linear, linear_margins, step_features
from services.rewardmodel.domain.completeness import OutcomeCounts, count_outcomes
from services.rewardmodel.domain.episode_bootstrap import pair_mean_interval
from services.rewardmodel.domain.gates import GateInputs, GateThresholds, evaluate_gates
from services.rewardmodel.domain.metrics import (
    HeldoutPairs,
    Reliability,
    accuracy,
    average_ranks,
    bootstrap_interval,
    equal_mass_calibration_error,
    fit_temperature,
    measure_reliability,
    rank_correlation,
)
from services.rewardmodel.domain.preferences import Ints, PairingConfig, RatingArrays, Reals, label_pairs
from shared.contracts.ids import SegmentId


def heldout_pairs(value: Reals, margin_of: Reals, first: Ints, second: Ints, fold: Ints | None = None) -> HeldoutPairs:
    """Held-out pairs of segments with these values; the margins are differences of `margin_of`."""
    count = len(value)
    pairs = label_pairs(RatingArrays(value, np.zeros(count), np.ones(count)), first, second, PairingConfig())
    folds = np.zeros(len(first), np.int64) if fold is None else fold
    return HeldoutPairs(pairs, margin_of[first] - margin_of[second], folds, value)


def many(count: int = 400, pairs: int = 6_000, seed: int = 0) -> tuple[Reals, Ints, Ints]:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, count, pairs)
    return rng.uniform(0, 1, count), first, (first + rng.integers(1, count, pairs)) % count


def test_accuracy_counts_undecided_pairs_half() -> None:
    value = np.array([0.9, 0.5, 0.1])
    first, second = np.array([0, 1, 2]), np.array([1, 2, 0])
    perfect = heldout_pairs(value, value, first, second)
    assert accuracy(perfect.hits, perfect.pairs.confident) == 1.0
    assert heldout_pairs(value, -value, first, second).hits.tolist() == [0.0, 0.0, 0.0]
    assert heldout_pairs(value, np.zeros(3), first, second).hits.tolist() == [0.5, 0.5, 0.5]
    assert accuracy(perfect.hits, np.zeros(3, np.bool_)) is None


def test_exact_ties_count_nowhere_and_near_ties_only_in_all() -> None:
    found = heldout_pairs(np.array([0.5, 0.5, 0.52]), np.array([0.0, 1.0, 2.0]), np.array([0, 2]), np.array([1, 0]))
    assert found.untied.tolist() == [False, True]
    assert found.pairs.confident.tolist() == [False, False]


def test_the_interval_widens_with_fewer_episodes() -> None:
    value, first, second = many()
    block = np.arange(len(value)) // 50
    wrong_in_some = np.where(block % 4 == 0, -value, value)  # the model fails in one part of the game
    found = heldout_pairs(value, wrong_in_some, first, second)
    widths = []
    for episode in (np.random.default_rng(1).permutation(len(value)), block):
        low, high = bootstrap_interval(found, episode, np.random.default_rng(0)) or (0, 0)
        share = accuracy(found.hits, found.pairs.confident)
        assert share is not None
        assert low < share < high
        widths.append(high - low)
    assert widths[1] > 1.5 * widths[0]


def test_a_pair_is_weighted_by_the_draws_of_both_episodes() -> None:
    value, first, second = np.array([0.9, 0.1, 0.1]), np.array([0, 0]), np.array([1, 2])
    found = heldout_pairs(value, np.array([0.5, 0.0, 1.0]), first, second)  # right for one pair, wrong for the other
    assert bootstrap_interval(found, np.arange(3), np.random.default_rng(0)) == (0.0, 1.0)


def test_ten_episodes_with_a_pair_each_are_ten_independent_pairs() -> None:
    value, first = np.tile([0.9, 0.1], 10), np.arange(0, 20, 2)
    right = np.repeat([1.0, -1.0], 10)  # right for five pairs, wrong for five
    found = heldout_pairs(value, value * right, first, first + 1)
    interval = bootstrap_interval(found, np.arange(20) // 2, np.random.default_rng(0))
    assert interval == pytest.approx((0.2, 0.8)), "that of 10 draws, of which half are right"


def test_a_pair_within_an_episode_is_weighted_by_its_draws_alone() -> None:
    """Two copies of episode 0 hold its pair twice, and its pair with episode 1 twice."""
    right, first, second = np.array([1.0, 0.0]), np.array([0, 0]), np.array([0, 1])
    assert pair_mean_interval(right, first, second, [np.array([2, 1])]) == (0.5, 0.5)
    assert pair_mean_interval(right, first, second, [np.array([0, 3])]) is None


def test_the_interval_leaves_out_a_fortieth_at_each_end() -> None:
    episodes = np.arange(41)
    draws = list(np.eye(41, dtype=np.int64))  # each draws one episode, whose pair has the episode's number as its value
    assert pair_mean_interval(episodes.astype(float), episodes, episodes, draws) == pytest.approx((1.0, 39.0))


@pytest.mark.parametrize("true_temperature", [0.3, 1.0, 4.0])
def test_the_true_temperature_is_recovered(true_temperature: float) -> None:
    rng = np.random.default_rng(0)
    margin = rng.normal(0, 2, 20_000)
    outcome = (rng.random(20_000) < 1 / (1 + np.exp(-margin / true_temperature))).astype(float)
    assert fit_temperature(margin, outcome) == pytest.approx(true_temperature, rel=0.12)


def test_a_model_that_is_always_right_is_not_called_certain() -> None:
    """Ten right pairs and the pseudo-pair against the model: ten of eleven are right."""
    assert expit(1 / fit_temperature(np.ones(10), np.ones(10))) == pytest.approx(10 / 11, abs=0.01)


def test_calibration_error_separates_honest_and_overconfident_models() -> None:
    rng = np.random.default_rng(0)
    probability = rng.uniform(0.5, 1, 20_000)
    outcome = (rng.random(20_000) < probability).astype(float)
    assert equal_mass_calibration_error(probability, outcome) < 0.02
    assert equal_mass_calibration_error(np.full(20_000, 0.99), outcome) > 0.2


def test_the_temperature_calibrates_an_overconfident_model() -> None:
    value, first, second = many()
    noisy = (value + np.random.default_rng(1).normal(0, 0.2, len(value))) * 50
    fold = np.random.default_rng(2).integers(0, 5, len(first))
    found = measure_reliability(heldout_pairs(value, noisy, first, second, fold))
    assert found is not None
    assert found.temperature > 3
    assert found.ece < 0.06
    assert found.brier < 0.2


def test_calibration_is_cross_fitted() -> None:
    value, first, second = many()
    fold = np.arange(len(first)) % 2
    right, noise = np.sign(value[first] - value[second]), np.random.default_rng(3).normal(0, 50, len(first))
    # One fold is always right with low confidence, the other random with high confidence.
    found = measure_reliability(
        replace(heldout_pairs(value, value, first, second, fold), margin=np.where(fold, noise, right))
    )
    assert found is not None
    assert found.ece > 0.3, "with its own temperature each fold would look calibrated"


def test_a_single_fold_is_measured_on_itself() -> None:
    value, first, second = many(pairs=500)
    found = measure_reliability(
        heldout_pairs(value, value + np.random.default_rng(1).normal(0, 0.2, len(value)), first, second)
    )
    assert found is not None
    assert found.ece < 0.1


def test_undecided_pairs_do_not_worsen_the_calibration() -> None:
    value, first, second = many()
    noisy = value + np.random.default_rng(1).normal(0, 0.2, len(value))
    fold = np.random.default_rng(2).integers(0, 5, len(first))
    heldout = heldout_pairs(value, noisy, first, second, fold)
    undecided = replace(heldout, margin=np.where(np.arange(len(first)) % 2, heldout.margin, 0.0))
    plain, mixed = measure_reliability(heldout), measure_reliability(undecided)
    assert plain is not None
    assert mixed is not None
    assert mixed.ece < plain.ece + 0.02


def test_rank_correlation_compares_within_folds_only() -> None:
    value = np.linspace(0, 1, 20)
    fold = np.arange(20) % 2
    score = value + 100 * fold  # members have different scales
    assert rank_correlation(score, value, fold) == pytest.approx(1.0)
    assert rank_correlation(-score, value, fold) == pytest.approx(-1.0)
    assert rank_correlation(np.zeros(20), value, fold) is None


def test_rank_correlation_weights_folds_by_size_and_skips_tiny_ones() -> None:
    value = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 8.0])
    score = np.array([1.0, 2.0, 3.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 2.0])
    fold = np.array([0] * 3 + [1] * 6 + [2] * 2)
    assert rank_correlation(score, value, fold) == pytest.approx((3 * 1.0 + 6 * -1.0) / 9)


def test_ratings_that_differ_by_rounding_alone_share_a_rank() -> None:
    score, fold = np.array([1.0, 2.0, 3.0]), np.zeros(3, np.int64)
    expected = rank_correlation(score, np.array([0.3, 0.3, 0.9]), fold)
    assert rank_correlation(score, np.array([0.1 + 0.2, 0.3, 0.9]), fold) == expected


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=40))
def test_average_ranks_equal_those_of_scipy(values: list[float]) -> None:
    assert average_ranks(np.array(values)).tolist() == stats.rankdata(values).tolist()


def test_the_step_index_baseline_exposes_a_judge_of_time() -> None:
    rng = np.random.default_rng(0)
    first_step = rng.uniform(0, 3_000, 300)
    value = np.exp(-(((first_step - 1_000) / 600) ** 2))  # best in the middle, so a linear term alone does not suffice
    count, pairs = 300, 4_000
    a = rng.integers(0, count, pairs)
    b = (a + rng.integers(1, count, pairs)) % count
    every = label_pairs(RatingArrays(value, np.zeros(count), np.ones(count)), a, b, PairingConfig())
    margin = linear_margins(step_features(first_step, np.full(count, 300.0)), every, every)
    found = HeldoutPairs(every, margin, np.zeros(pairs, int), value)
    share = accuracy(found.hits, every.confident)
    assert share is not None
    assert share > 0.85


def test_linear_weights_have_the_greatest_likelihood_with_the_ridge() -> None:
    """The gradient is 0 there: a pair counts by its weight, and large weights of features are held back."""
    rng = np.random.default_rng(0)
    features, value = rng.normal(0, 1, (30, 3)), rng.uniform(0, 1, 30)
    first, second = np.arange(29), np.arange(1, 30)
    pairs = label_pairs(RatingArrays(value, np.full(30, 0.1), np.linspace(0, 1, 30)), first, second, PairingConfig())
    weights = fit_linear(features, pairs)
    difference = features[first] - features[second]
    pull = difference.T @ (pairs.weight * (pairs.target - expit(difference @ weights)))
    np.testing.assert_allclose(pull, RIDGE * weights, atol=1e-9)
    assert np.abs(weights).max() > 0.1


def test_the_step_position_of_a_segment_is_its_middle() -> None:
    position = step_features(np.array([0.0, 300.0]), np.array([300.0, 300.0]))[:, 0]
    assert position.tolist() == [0.25, 0.75]


def figures(**changes: object) -> GateInputs:
    good = {
        "accuracy_confident": 0.8,
        "accuracy_all": 0.7,
        "confident_pairs": 500,
        "episodes": 40,
        "baselines": {"step_index": 0.6, "linear": 0.65, "shuffled_labels": 0.51},
        "reliability": Reliability(1.0, 0.03, 0.2),
        "spread": 0.8,
        "quorum": True,
    }
    return GateInputs(**{**good, **changes})  # type: ignore[arg-type]


def test_a_good_model_passes_every_gate() -> None:
    assert all(evaluate_gates(figures(), GateThresholds()).values())


@pytest.mark.parametrize(
    ("gate", "changes"),
    [
        ("quorum", {"quorum": False}),
        ("enough_pairs", {"confident_pairs": 49}),
        ("enough_episodes", {"episodes": 4}),
        ("accuracy_confident", {"accuracy_confident": 0.69}),
        ("accuracy_all", {"accuracy_all": 0.59}),
        ("beats_step_index", {"baselines": {"step_index": 0.76, "linear": 0.7, "shuffled_labels": 0.5}}),
        ("beats_linear", {"baselines": {"step_index": 0.5, "linear": 0.9, "shuffled_labels": 0.5}}),
        ("beats_linear", {"baselines": {"step_index": 0.5, "linear": None, "shuffled_labels": 0.5}}),
        ("shuffled_is_chance", {"baselines": {"step_index": 0.5, "linear": 0.6, "shuffled_labels": 0.7}}),
        ("shuffled_is_chance", {"baselines": {"step_index": 0.5, "linear": 0.6, "shuffled_labels": 0.3}}),
        ("shuffled_is_chance", {"baselines": {"step_index": 0.5, "linear": 0.6}}),
        ("calibrated", {"reliability": Reliability(1.0, 0.3, 0.2)}),
        ("calibrated", {"reliability": None}),
        ("spread", {"spread": 0.01}),
    ],
)
def test_each_gate_fails_for_its_own_reason(gate: str, changes: dict[str, object]) -> None:
    outcome = evaluate_gates(figures(**changes), GateThresholds())
    assert not outcome[gate]
    assert [name for name, passed in outcome.items() if not passed] == [gate]


def test_figures_at_the_thresholds_pass() -> None:
    config = GateThresholds()
    just = figures(
        accuracy_confident=config.accuracy_confident,
        accuracy_all=config.accuracy_all,
        confident_pairs=config.pairs,
        episodes=config.episodes,
        baselines={
            "step_index": config.accuracy_confident - config.over_step_index,
            "linear": config.accuracy_confident - config.over_linear,
            "shuffled_labels": config.shuffled_low,
        },
        reliability=Reliability(1.0, config.ece, 0.2),
        spread=config.spread,
    )
    assert [name for name, passed in evaluate_gates(just, config).items() if not passed] == []


def test_a_lead_of_just_the_threshold_passes_in_spite_of_rounding() -> None:
    for hundredths in range(50, 95):
        accuracy, baseline = (hundredths + 5) / 100, hundredths / 100
        outcome = evaluate_gates(
            figures(accuracy_confident=accuracy, baselines={"step_index": baseline, "linear": accuracy + 0.05}),
            GateThresholds(over_step_index=0.05, over_linear=-0.05),
        )
        assert (outcome["beats_step_index"], outcome["beats_linear"]) == (True, True), hundredths


def test_missing_figures_fail_their_gates() -> None:
    outcome = evaluate_gates(figures(accuracy_confident=None, accuracy_all=None, spread=None), GateThresholds())
    failed = {name for name, passed in outcome.items() if not passed}
    assert failed == {"accuracy_confident", "accuracy_all", "beats_step_index", "beats_linear", "spread"}


def test_only_listed_segments_count_for_completeness() -> None:
    listed = [SegmentId("s1"), SegmentId("s2"), SegmentId("s3")]
    found = count_outcomes(listed, {SegmentId("s1"): "judged", SegmentId("s2"): "dead", SegmentId("other"): "judged"})
    assert found.counts() == {"judged": 1, "abstained": 0, "dead": 1, "missing": 1}
    assert not found.complete
    assert found.quorum(0.3)
    assert not found.quorum(0.5)
    assert found.quorum(1 / 3)
    assert count_outcomes([], {}).complete
    assert count_outcomes([], {}).quorum(1.0)
    assert count_outcomes([], {}).quorum(0.5)


def test_exactly_the_required_share_is_a_quorum() -> None:
    assert OutcomeCounts(judged=14, abstained=0, dead=0, missing=11).quorum(0.56)
    assert not OutcomeCounts(judged=13, abstained=0, dead=0, missing=12).quorum(0.56)
