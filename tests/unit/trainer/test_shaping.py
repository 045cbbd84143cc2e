"""ShapingWrapper must not change what is optimal: the four ways in which it can go wrong, executed."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from services.trainer.domain.shaping import ConservativePotential, Rewards, Shaper, shaping
from shared.contracts.learning.reward_learning import ShapingConfig
from shared.rewardnet import PHI_LIMIT, Floats, RewardNet, input_statistics, random_weights, standardise

GAMMA = 0.99
NO = np.zeros(1, np.bool_)
YES = np.ones(1, np.bool_)


class Table:
    """A potential that reads Phi from the first feature; it counts how many states it has seen."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, observations: Floats) -> Floats:
        self.seen += len(observations)
        return observations[:, 0].astype(np.float32)


def states(phi: NDArray[np.float64]) -> Floats:
    found = np.zeros((len(phi), 128), np.float32)
    found[:, 0] = phi
    return found


def play(shaper: Shaper, episode: Floats, terminated: bool) -> Rewards:
    """ShapingWrapper rewards of one episode of a single environment that visits the rows of `episode`."""
    shaper.begin(episode[:1])
    last = len(episode) - 1
    rewards = [
        shaper.step(episode[t : t + 1], YES if terminated and t == last else NO, NO if terminated or t < last else YES)
        for t in range(1, len(episode))
    ]
    return np.concatenate(rewards)


def discounted(rewards: Rewards) -> float:
    return float(np.sum(rewards * GAMMA ** np.arange(len(rewards))))


@pytest.mark.parametrize("steps", [1, 30, 3_000])
@pytest.mark.parametrize("terminated", [True, False])
def test_the_discounted_sum_telescopes_to_the_ends(steps: int, terminated: bool) -> None:
    episode = states(np.random.default_rng(steps).uniform(-3, 3, steps + 1))
    rewards = play(Shaper(1, ShapingConfig(mode="potential", coefficient=1.0), GAMMA, Table()), episode, terminated)
    # A learner that bootstraps at truncation expects gamma^T * Phi(s_T); at a terminal state there is nothing left.
    end = 0.0 if terminated else GAMMA**steps * float(episode[-1, 0])
    assert abs(discounted(rewards) - (end - float(episode[0, 0]))) < 1e-5


def test_it_still_telescopes_after_rewards_were_stored_as_float32() -> None:
    episode = states(np.random.default_rng(1).uniform(-3, 3, 3_001))
    rewards = play(
        Shaper(1, ShapingConfig(mode="potential", coefficient=1.0), GAMMA, Table()), episode, terminated=True
    )
    assert abs(discounted(rewards.astype(np.float32).astype(np.float64)) + float(episode[0, 0])) < 1e-5


def test_every_state_is_evaluated_once_at_the_time_of_its_visit() -> None:
    potential = Table()
    play(
        Shaper(1, ShapingConfig(mode="potential", coefficient=0.5), GAMMA, potential),
        states(np.linspace(0, 1, 11)),
        terminated=False,
    )
    assert potential.seen == 11


def test_termination_forfeits_phi_and_truncation_keeps_it() -> None:
    episode = states(np.array([0.0, 2.0]))
    config = ShapingConfig(mode="potential", coefficient=0.5)
    ended = play(Shaper(1, config, GAMMA, Table()), episode, terminated=True)
    cut = play(Shaper(1, config, GAMMA, Table()), episode, terminated=False)
    assert ended.tolist() == [0.0]
    assert cut == pytest.approx([0.5 * GAMMA * 2.0])


def test_any_potential_preserves_the_optimal_policy_of_a_tabular_world() -> None:
    rng = np.random.default_rng(7)
    for _ in range(25):
        states_n, actions = 12, 4
        transition = rng.dirichlet(np.full(states_n, 0.3), size=(states_n, actions))
        reward = rng.normal(size=(states_n, actions, states_n))
        terminal = np.zeros(states_n, np.bool_)
        terminal[-2:] = True
        phi = rng.uniform(-3, 3, states_n)
        extra = shaping(phi[:, None, None], phi[None, None, :], terminal[None, None, :], GAMMA)
        plain = optimal_values(transition, reward, terminal)
        shaped = optimal_values(transition, reward + extra, terminal)
        live = ~terminal
        assert (plain.argmax(1) == shaped.argmax(1))[live].all()
        # The theory says more: every action value falls by exactly Phi of its state.
        assert np.abs(plain - shaped - phi[:, None])[live].max() < 1e-6


def test_without_the_terminal_rule_the_optimal_policy_would_change() -> None:
    # One state, two actions: stop now for 0, or stop for 1 in a state of much lower Phi.
    transition = np.zeros((3, 2, 3))
    transition[0, 0, 1] = transition[0, 1, 2] = 1.0
    transition[1:, :, 1] = 1.0
    reward = np.zeros((3, 2, 3))
    reward[0, 1, 2] = 1.0
    terminal = np.array([False, True, True])
    phi = np.array([0.0, 2.0, -2.0])
    right = shaping(phi[:, None, None], phi[None, None, :], terminal[None, None, :], GAMMA)
    wrong = shaping(phi[:, None, None], phi[None, None, :], np.zeros((1, 1, 3), np.bool_), GAMMA)
    assert optimal_values(transition, reward, terminal)[0].argmax() == 1
    assert optimal_values(transition, reward + right, terminal)[0].argmax() == 1
    assert optimal_values(transition, reward + wrong, terminal)[0].argmax() == 0


def optimal_values(transition: Rewards, reward: Rewards, terminal: NDArray[np.bool_]) -> Rewards:
    """Action values (S, A) by value iteration; terminal states are worth 0."""
    expected = (transition * reward).sum(-1)
    values = np.zeros(len(terminal))
    for _ in range(4_000):
        action_values: Rewards = expected + GAMMA * transition @ values
        values = np.where(terminal, 0.0, action_values.max(1))
    return action_values


def test_many_environments_get_what_each_alone_would_get() -> None:
    rng = np.random.default_rng(3)
    steps, envs = 200, 6
    path = rng.uniform(-2, 2, (steps + 1, envs))
    ends = rng.random((steps, envs)) < 0.05
    cuts = ~ends & (rng.random((steps, envs)) < 0.05)
    together = run_next_step(
        Shaper(envs, ShapingConfig(mode="potential", coefficient=0.5), GAMMA, Table()), path, ends, cuts
    )
    for env in range(envs):
        alone = Shaper(1, ShapingConfig(mode="potential", coefficient=0.5), GAMMA, Table())
        column = slice(env, env + 1)
        apart = run_next_step(alone, path[:, column], ends[:, column], cuts[:, column])
        assert np.abs(together[:, column] - apart).max() < 1e-9


def run_next_step(shaper: Shaper, path: Rewards, ends: NDArray[np.bool_], cuts: NDArray[np.bool_]) -> Rewards:
    """Play a path (T+1, N) under NEXT_STEP autoreset, where the step after an ending is a reset, not a step."""
    shaper.begin(states(path[0]))
    rewards, resetting = [], np.zeros(path.shape[1], np.bool_)
    for t in range(len(ends)):
        rewards.append(shaper.advance(states(path[t + 1]), ends[t] & ~resetting, cuts[t] & ~resetting))
        assert (rewards[-1][resetting] == 0.0).all()
        resetting = (ends[t] | cuts[t]) & ~resetting
    return np.stack(rewards)


def test_additive_pays_the_reached_states_score() -> None:
    episode = states(np.array([5.0, 1.0, -2.0]))
    additive = play(Shaper(1, ShapingConfig(mode="additive", coefficient=0.1), GAMMA, Table()), episode, True)
    assert additive == pytest.approx([0.1, -0.2])


def test_gain_adds_up_to_what_was_gained_and_a_round_trip_to_nothing() -> None:
    gain = ShapingConfig(mode="gain", coefficient=0.5)
    there = play(Shaper(1, gain, GAMMA, Table()), states(np.array([-1.0, 2.0, 1.0])), True)
    assert there == pytest.approx([1.5, -0.5])
    round_trip = np.append(np.random.default_rng(0).uniform(-3, 3, 500), 0.0)
    round_trip[0] = 0.0
    assert abs(float(play(Shaper(1, gain, GAMMA, Table()), states(round_trip), False).sum())) < 1e-5


def test_an_environment_that_has_ended_gets_nothing_until_it_begins() -> None:
    shaper, neither = Shaper(2, ShapingConfig(mode="gain", coefficient=1.0), GAMMA, Table()), np.zeros(2, np.bool_)
    shaper.begin(states(np.array([1.0, 1.0])))
    shaper.step(states(np.array([2.0, 2.0])), np.array([True, False]), neither)
    assert shaper.step(states(np.array([9.0, 3.0])), neither, neither).tolist() == [0.0, 1.0]
    shaper.begin(states(np.array([5.0, 0.0])), np.array([True, False]))
    assert shaper.step(states(np.array([7.0, 3.0])), neither, neither).tolist() == [2.0, 0.0]


@pytest.mark.parametrize("gamma", [0.0, -0.5, 1.5])
def test_a_discount_that_is_none_is_refused(gamma: float) -> None:
    with pytest.raises(ValueError, match="learner's discount"):
        Shaper(1, ShapingConfig(mode="potential", coefficient=0.5), gamma, Table())


def trained_like_net() -> tuple[RewardNet, Floats]:
    seen = np.random.default_rng(0).uniform(-0.5, 0.5, (4_000, 128)).astype(np.float32)
    weights = random_weights(5, 1)
    mean, scale = input_statistics(seen)
    weights = standardise(type(weights)(**{**vars(weights), "input_mean": mean, "input_scale": scale}), seen)
    return RewardNet(weights), seen


def test_phi_is_centred_and_clipped_and_sinks_where_the_members_disagree() -> None:
    net, seen = trained_like_net()
    phi = ConservativePotential(net, 1.0)(seen)
    assert abs(float(phi.mean())) < 0.05
    far = np.random.default_rng(1).uniform(-1, 1, (4_000, 128)).astype(np.float32) * 4
    wild = ConservativePotential(net, 1.0)(far)
    assert np.abs(wild).max() <= PHI_LIMIT
    assert float(wild.mean()) < float(ConservativePotential(net, 0.0)(far).mean()) - 0.3


class Counting(RewardNet):
    """A reward model that counts its evaluations."""

    calls = 0

    def forward(self, observations: Floats, out: Floats | None = None) -> Floats:
        self.calls += 1
        return super().forward(observations, out)


def test_phi_is_evaluated_again_only_when_the_models_inputs_changed() -> None:
    net, seen = trained_like_net()
    blind = np.arange(128) >= 100
    scale = np.where(blind, 0.0, net.weights.input_scale).astype(np.float32)
    counting = Counting(replace(net.weights, input_scale=scale))
    phi, batch = ConservativePotential(counting), seen[:16].copy()
    first = phi(batch).copy()

    batch[:, blind] += 0.5
    assert np.array_equal(phi(batch), first)
    assert counting.calls == 1

    batch[3, 99] += 0.5
    moved = phi(batch)
    assert counting.calls == 2
    assert np.flatnonzero(moved != first).tolist() == [3]
    assert np.array_equal(moved, ConservativePotential(counting)(batch))
