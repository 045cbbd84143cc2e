"""Advantages of choices that last several steps, against a loop over the definition (Sutton, Precup, Singh 1999)."""

import numpy as np
import pytest
from numpy.typing import NDArray

from services.trainer.rl.gae import Floats, advantages, option_advantages


def by_definition(
    rewards: Floats, values: Floats, decided: NDArray[np.bool_], last: float, discount: float, gae_lambda: float
) -> list[float]:
    """The same sum, one choice and one step at a time."""
    starts = [step for step in range(len(rewards)) if decided[step]]
    found = [0.0] * len(rewards)
    following = 0.0
    for place in reversed(range(len(starts))):
        begin = starts[place]
        end = starts[place + 1] if place + 1 < len(starts) else len(rewards)
        reached = float(values[end]) if end < len(rewards) else last
        earned = sum(discount**step * float(rewards[begin + step]) for step in range(end - begin))
        error = earned + discount ** (end - begin) * reached - float(values[begin])
        following = error + discount ** (end - begin) * gae_lambda * following
        found[begin] = following
    return found


def random_chunk(seed: int, share: float) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    rewards, values = rng.normal(size=(2, 60)).astype(np.float32)
    return rewards, values, rng.random(60) < share


@pytest.mark.parametrize("seed", range(20))
def test_advantages_follow_the_definition(seed: int) -> None:
    rewards, values, decided = random_chunk(seed, 0.3)
    found = option_advantages(rewards, values, decided, last_value=0.7, discount=0.97, gae_lambda=0.9)
    expected = by_definition(rewards, values, decided, 0.7, 0.97, 0.9)
    assert found == pytest.approx(expected, abs=1e-4)
    assert not found[~decided].any()


def test_a_choice_of_three_steps_by_hand() -> None:
    rewards, values = np.array([1, 2, 4, 8], np.float32), np.array([10, 99, 99, 5], np.float32)
    decided = np.array([True, False, False, True])
    found = option_advantages(rewards, values, decided, last_value=0.0, discount=0.5, gae_lambda=1.0)
    assert found[3] == 8 - 5  # the episode terminates
    assert found[0] == 1 + 0.5 * 2 + 0.25 * 4 + 0.125 * 5 - 10 + 0.125 * 3


def test_choices_of_one_step_are_the_usual_estimate() -> None:
    rewards, values, _ = random_chunk(1, 1)
    usual = advantages(rewards, values, last_value=0.2, discount=0.99, gae_lambda=0.95)
    every = np.ones(60, np.bool_)
    found = option_advantages(rewards, values, every, last_value=0.2, discount=0.99, gae_lambda=0.95)
    assert found == pytest.approx(usual, abs=1e-4)


def test_steps_of_an_earlier_chunks_choice_count_for_nothing() -> None:
    rewards, values, decided = random_chunk(3, 0.3)
    decided[:7], decided[7] = False, True
    found = option_advantages(rewards, values, decided, last_value=0.1, discount=0.9, gae_lambda=0.8)
    rest = option_advantages(rewards[7:], values[7:], decided[7:], last_value=0.1, discount=0.9, gae_lambda=0.8)
    assert np.array_equal(found[7:], rest)
    assert not found[:7].any()


def test_a_chunk_within_one_option_has_no_advantage() -> None:
    rewards, values, _ = random_chunk(4, 1)
    none = np.zeros(60, np.bool_)
    assert not option_advantages(rewards, values, none, last_value=1.0, discount=0.9, gae_lambda=0.9).any()
