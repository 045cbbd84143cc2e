"""The baseline on shuffled labels: the same training, but scores dealt out at random among the segments.

Nothing can be learnt, so held-out accuracy must be one half; more is a leak between training and held-out pairs.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from services.rewardmodel.domain.metrics import accuracy
from services.rewardmodel.domain.preferences import Blocks, Ints, Pairs, Rated
from services.rewardmodel.training import measure
from services.rewardmodel.training.ensemble import Parameters, fresh, score
from services.rewardmodel.training.fit import LIGHT
from services.rewardmodel.training.problem import Problem, solve

MOST_SEGMENTS = 600  # the answer is one half however many there are
STEPS = 100  # enough to memorise the training pairs, which is what a leak would show


def shuffled_accuracy(problem: Problem, interrupted: Callable[[], bool]) -> float | None:
    """Mean held-out accuracy on confident pairs over several shuffles; None if there are no such pairs.

    Held-out labels are shuffled, too: an honest split then has nothing to predict, whatever the model learnt.
    """
    rules = problem.rules
    deals = [_dealt(problem, number) for number in range(rules.shuffles * _times(len(problem.fold)))]
    blocks: list[Blocks | None] = [block for deal in deals for block in deal.blocks()]
    if not blocks or all(block is None or not block.pairs for block in blocks):
        return None
    short = replace(rules.fit, blind_steps=STEPS, least_steps=STEPS, most_steps=STEPS, strata=4)
    start = fresh(len(blocks), problem.seed)
    fitted = solve(deals[0], blocks, [_nothing()] * len(blocks), start, [LIGHT] * len(blocks), short, interrupted)
    found = []
    for number, deal in enumerate(deals):
        members = slice(number * rules.members, (number + 1) * rules.members)
        found.append(_accuracy(deal, {name: tensor[members] for name, tensor in fitted.parameters.items()}))
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else None


def _times(segments: int) -> int:
    """How many times more shuffles few segments need: each tells less, and costs less."""
    return min(3, max(1, 300 // max(segments, 1)))


def _dealt(problem: Problem, number: int) -> Problem:
    """The problem on some of its segments, with the scores dealt out anew among them."""
    some = np.random.default_rng([problem.seed, 5]).permutation(len(problem.fold))[:MOST_SEGMENTS]
    order = some[np.random.default_rng([problem.seed, 6, number]).permutation(len(some))]
    rated = problem.rated
    return Problem(
        inputs=problem.inputs[torch.from_numpy(some)],
        rated=Rated(rated.value[order], rated.deviation[order], rated.agreement[order]),
        fold=problem.fold[some],
        rules=problem.rules,
        seed=problem.seed + number,
    )


def _nothing() -> Pairs:
    rows: Ints = np.zeros(0, np.int64)
    return Pairs(rows, rows, np.zeros(0), np.zeros(0), np.zeros(0, np.bool_))


def _accuracy(deal: Problem, parameters: Parameters) -> float | None:
    members, (segments, steps, width) = deal.rules.members, deal.inputs.shape
    with torch.no_grad():
        flat = deal.inputs.reshape(1, segments * steps, width).expand(members, -1, -1)
        scores = score(parameters, flat).reshape(members, segments, steps).numpy()
    pairs = measure.pairs_by_fold(deal.rated, deal.fold, members, deal.seed, deal.rules.pairs)
    margins = measure.crossed_margins(measure.segment_scores(scores, deal.rules.pooling), pairs)
    held = measure.heldout(pairs, margins, deal.rated.value)
    return accuracy(held.hits, held.pairs.confident)
