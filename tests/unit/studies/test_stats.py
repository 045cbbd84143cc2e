"""Statistics of studies against values by hand, against scipy, and against rliable."""

from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from studies.stats import Reals, improvement, improvement_estimate, iqm, iqm_estimate, permutation_p, share_estimate

# One world with 10 seeds, and three worlds with 8; one row per world.
JUDGED = np.array([[0.426, 0.293, 0.238, 0.408, 0.417, 0.148, 0.649, 0.546, 0.159, 0.355]])
OTHER = np.array([[0.462, 0.149, 0.083, 0.302, 0.201, 0.116, 0.535, 0.041, 0.41, 0.527]])
JUDGED_3 = np.array(
    [
        [0.552, 0.437, 0.505, 0.515, 0.77, 0.438, 0.457, 0.502],
        [0.23, 0.109, 0.489, 0.054, 0.657, 0.354, 0.224, 0.488],
        [0.36, 0.788, 0.3, 0.424, 0.271, 0.323, 0.187, 0.219],
    ]
)
OTHER_3 = np.array(
    [
        [0.369, 0.486, 0.296, 0.316, 0.301, 0.072, 0.119, 0.553],
        [0.26, 0.336, 0.127, 0.152, 0.163, 0.218, 0.082, 0.349],
        [0.502, 0.446, 0.764, 0.349, 0.111, 0.114, 0.316, 0.171],
    ]
)


def test_the_interquartile_mean_trims_a_quarter_at_each_end() -> None:
    assert iqm(np.array([0.0, 1.0, 2.0, 100.0])) == 1.5
    assert iqm(np.array([5.0])) == 5.0
    # Of five values the middle one has weight 1, its neighbours have weight 0.75, the others 0.
    assert iqm(np.array([100.0, 1.0, 2.0, 3.0, -100.0])) == pytest.approx((0.75 * 1 + 2 + 0.75 * 3) / 2.5)


def test_the_probability_of_improvement_counts_ties_half() -> None:
    assert improvement([np.array([1.0, 2.0])], [np.array([0.0, 2.0])]) == (1 + 0 + 1 + 0.5) / 4


@pytest.mark.parametrize(("count", "of"), [(0, 4), (9, 10), (96, 100), (3, 3)])
def test_the_interval_of_a_share_is_wilsons(count: int, of: int) -> None:
    found = share_estimate(count, of)
    expected = scipy.stats.binomtest(count, of).proportion_ci(method="wilson")
    assert found.value == count / of
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_interval_of_a_share_is_that_of_the_formula() -> None:
    found = share_estimate(96, 100).rounded(4)
    assert found == (0.96, 0.9016, 0.9843)  # worked out by hand after Wilson (1927), z = 1.96
    assert share_estimate(0, 4).rounded(4) == (0.0, 0.0, 0.4899)


def test_intervals_contain_the_value_and_shrink_with_more_seeds() -> None:
    rng = np.random.default_rng(1)
    few, many = iqm_estimate(rng.normal(size=5)), iqm_estimate(rng.normal(size=100))
    assert few.low <= few.value <= few.high
    assert many.high - many.low < few.high - few.low
    sure = improvement_estimate([np.array([3.0, 4.0, 5.0])], [np.array([0.0, 1.0])])
    assert (sure.value, sure.low, sure.high) == (1.0, 1.0, 1.0)


# rliable 1.2.0 (scores transposed; get_interval_estimates with 50,000 resamples of the IQM, 5,000 of the probability).
@pytest.mark.parametrize(
    ("scores", "value", "low", "high"),
    [(JUDGED_3, 0.40358, 0.33592, 0.46533), (OTHER_3, 0.26892, 0.19558, 0.34192)],
)
def test_interquartile_means_agree_with_rliable(scores: Reals, value: float, low: float, high: float) -> None:
    # Both agree because 4 divides 24. For 10 seeds rliable cuts 2 whole values at each end, here it is 2.5.
    found = iqm_estimate(*scores)
    assert found.value == pytest.approx(value, abs=1e-5)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.004)
    assert iqm(JUDGED[0]) != pytest.approx(scipy.stats.trim_mean(JUDGED[0], 0.25), abs=1e-4)


@pytest.mark.parametrize(
    ("scores", "others", "value", "low", "high"),
    [(JUDGED, OTHER, 0.63, 0.36, 0.86), (JUDGED_3, OTHER_3, 0.68229166667, 0.5208, 0.8333)],
)
def test_improvements_agree_with_rliable(scores: Reals, others: Reals, value: float, low: float, high: float) -> None:
    found = improvement_estimate(list(scores), list(others))
    assert found.value == pytest.approx(value, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.015)


def test_p_for_ten_seeds_counts_all_184756_assignments() -> None:
    exact = scipy.stats.mannwhitneyu(JUDGED[0], OTHER[0], method="exact").pvalue
    assert permutation_p(list(JUDGED), list(OTHER)) == pytest.approx(exact, rel=1e-9)
    best = permutation_p([np.arange(10.0, 20.0)], [np.arange(10.0)])
    assert best == pytest.approx(2 / 184_756)


@given(st.lists(st.integers(0, 4), min_size=3, max_size=9), st.integers(1, 8))
def test_p_equals_an_enumeration_with_ties(drawn: list[int], split: int) -> None:
    scores, size = np.array(drawn, float), min(split, len(drawn) - 1)
    observed = improvement([scores[:size]], [scores[size:]])
    extreme, count = 0, 0
    for chosen in combinations(range(len(scores)), size):
        rest = np.setdiff1d(np.arange(len(scores)), chosen)
        one = improvement([scores[list(chosen)]], [scores[rest]])
        extreme, count = extreme + (abs(one - 0.5) >= abs(observed - 0.5) - 1e-9), count + 1
    assert permutation_p([scores[:size]], [scores[size:]]) == pytest.approx(extreme / count)


def test_worlds_permute_apart() -> None:
    # Within each world all scores of one arm are higher: 2 of 6 assignments are as extreme, and 2 of 36 in two worlds.
    first, second = [np.array([1.0, 2.0]), np.array([11.0, 12.0])], [np.array([-1.0, 0.0]), np.array([8.0, 9.0])]
    assert permutation_p(first[:1], second[:1]) == pytest.approx(2 / 6)
    assert permutation_p(first, second) == pytest.approx(2 / 36)
    # A bootstrap over pooled seeds would mix the worlds: the lowest score of the second exceeds the first's highest.
    assert improvement_estimate(first, second).low == 1.0


def test_scores_that_differ_by_rounding_alone_are_ties() -> None:
    # Learning speeds of two trials with the same evaluations in another order.
    early, late = (float(np.mean(shares)) for shares in ([0.0357, 0.0357, 0.1071], [0.1071, 0.0357, 0.0357]))
    assert early != late
    first, second = np.array([late, 0.5]), np.array([early, 0.5])
    assert improvement([first], [second]) == 0.5
    assert improvement_estimate([first[:1]], [second[:1]]).low == 0.5
    assert permutation_p([first], [second]) == pytest.approx(1.0)


def test_equal_scores_show_nothing() -> None:
    assert permutation_p([np.zeros(10)], [np.zeros(10)]) == 1.0
