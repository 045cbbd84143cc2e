"""From a data set to a reward model: fit from scratch (twice) and from the previous model, and keep the best one.

Deterministic for the same data and rules. With data too few to learn from it returns a neutral model and says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from services.rewardmodel.domain.dataset import Dataset
from services.rewardmodel.domain.preferences import Blocks
from services.rewardmodel.training.ensemble import Parameters, continued, exported, fresh, joined
from services.rewardmodel.training.fit import LIGHT, STRICT, Restraint
from services.rewardmodel.training.problem import Problem, TrainRules, solve, standardised_inputs
from shared.contracts.card import Fit
from shared.rewardnet import WIDTH, Floats, RewardWeights, input_statistics, neutral, standardised

RESTRAINTS: Final[dict[Fit, Restraint]] = {"full": LIGHT, "strict": STRICT, "warm": LIGHT}
MOST_STATES = 50_000  # for statistics: more change them in the third digit


@dataclass(frozen=True)
class Trained:
    """A fitted ensemble with frozen standardisation, the pairs of each member, and how it came about."""

    weights: RewardWeights
    blocks: Sequence[Blocks | None]
    fit: Fit
    validation_loss: dict[str, float]
    problem: Problem


@dataclass(frozen=True)
class Task:
    """What to train on. `masked` are features the model must not see; `previous` may be continued."""

    data: Dataset
    observation: str
    masked: Sequence[int] = ()
    previous: RewardWeights | None = None
    seed: int = 0


def train(task: Task, rules: TrainRules, interrupted: Callable[[], bool]) -> Trained:
    """Fit an ensemble; raise Interrupted soon after `interrupted()` turned true."""
    data = task.data
    mean, scale = _statistics(task)
    problem = Problem(standardised_inputs(data.states, mean, scale), data.rated, data.fold, rules, task.seed)
    blocks = problem.blocks()
    if all(block is None or not block.pairs for block in blocks):
        return Trained(neutral(rules.members, task.observation), blocks, "none", {}, problem)
    starts = _starts(task, rules, mean, scale)
    fitted = solve(
        problem,
        blocks * len(starts),
        problem.validation() * len(starts),
        joined(list(starts.values())),
        [RESTRAINTS[kind] for kind in starts for _ in range(rules.members)],
        rules.fit,
        interrupted,
    )
    losses = fitted.validation_loss.reshape(len(starts), rules.members).nanmean(1).tolist()
    known: dict[str, float] = {kind: loss for kind, loss in zip(starts, losses, strict=True) if np.isfinite(loss)}
    best: Fit = min(starts, key=lambda kind: known.get(kind, np.inf))  # the first, `full`, when nothing is known
    place = list(starts).index(best) * rules.members
    weights = exported(fitted.parameters, slice(place, place + rules.members), mean, scale, task.observation)
    weights = standardised(_silenced(weights, blocks), _some_states(data, task.seed))
    return Trained(weights, blocks, best, known, problem)


def _starts(task: Task, rules: TrainRules, mean: Floats, scale: Floats) -> dict[Fit, Parameters]:
    starts: dict[Fit, Parameters] = {kind: fresh(rules.members, task.seed) for kind in ("full", "strict")}
    previous = task.previous
    if not rules.warm_start or previous is None or not previous.value_weight.any():
        return starts
    if previous.members == rules.members and previous.observation == task.observation:
        starts["warm"] = continued(previous, mean, scale)
    return starts


def _statistics(task: Task) -> tuple[Floats, Floats]:
    masked = np.zeros(WIDTH, np.bool_)
    masked[list(task.masked)] = True
    states = _some_states(task.data, task.seed)
    if not len(states):
        return np.zeros(WIDTH, np.float32), np.ones(WIDTH, np.float32)
    return input_statistics(states, masked)


def _some_states(data: Dataset, seed: int) -> Floats:
    flat = data.states.reshape(-1, WIDTH)
    if len(flat) <= MOST_STATES:
        return flat
    return flat[np.random.default_rng([seed, 4]).choice(len(flat), MOST_STATES, replace=False)]


def _silenced(weights: RewardWeights, blocks: Sequence[Blocks | None]) -> RewardWeights:
    """Members that had nothing to learn from score 0 instead of noise."""
    idle = np.array([block is None or not block.pairs for block in blocks])
    return replace(weights, value_weight=np.where(idle[:, None], np.float32(0), weights.value_weight))
