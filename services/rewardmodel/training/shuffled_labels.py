"""The baseline on shuffled labels: the same training, but scores dealt out at random among the segments.

Nothing can be learnt, so held-out accuracy must be one half; more is a leak between training and held-out pairs.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from services.rewardmodel.domain.metrics import accuracy
from services.rewardmodel.domain.preferences import Ints, PairBlocks, PreferencePairs, RatingArrays
from services.rewardmodel.training import evaluation
from services.rewardmodel.training.ensemble import Parameters, initial_parameters, score
from services.rewardmodel.training.fit import LIGHT
from services.rewardmodel.training.fit_problem import FitProblem, fit_members

MAX_SEGMENTS = 600  # the answer is one half however many there are
STEPS = 100  # enough to memorise the training pairs, which is what a leak would show


def shuffled_accuracy(problem: FitProblem, should_cancel: Callable[[], bool]) -> float | None:
    """Mean held-out accuracy on confident pairs over several shuffles; None if there are no such pairs.

    Held-out labels are shuffled, too: an honest split then has nothing to predict, whatever the model learnt.
    """
    config = problem.config
    deals = [_dealt(problem, number) for number in range(config.shuffles * _times(len(problem.fold)))]
    blocks: list[PairBlocks | None] = [block for deal in deals for block in deal.blocks()]
    if not blocks or all(block is None or not block.pairs for block in blocks):
        return None
    short = replace(config.fit, unvalidated_steps=STEPS, min_steps=STEPS, max_steps=STEPS, strata=4)
    start = initial_parameters(len(blocks), problem.seed)
    fitted = fit_members(
        deals[0], blocks, [_nothing()] * len(blocks), start, [LIGHT] * len(blocks), short, should_cancel
    )
    found = []
    for number, deal in enumerate(deals):
        members = slice(number * config.members, (number + 1) * config.members)
        found.append(_accuracy(deal, {name: tensor[members] for name, tensor in fitted.parameters.items()}))
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else None


def _times(segments: int) -> int:
    """How many times more shuffles few segments need: each tells less, and costs less."""
    return min(3, max(1, 300 // max(segments, 1)))


def _dealt(problem: FitProblem, number: int) -> FitProblem:
    """The problem on some of its segments, with the scores dealt out anew among them."""
    some = np.random.default_rng([problem.seed, 5]).permutation(len(problem.fold))[:MAX_SEGMENTS]
    order = some[np.random.default_rng([problem.seed, 6, number]).permutation(len(some))]
    rated = problem.rated
    return FitProblem(
        inputs=problem.inputs[torch.from_numpy(some)],
        rated=RatingArrays(rated.value[order], rated.standard_error[order], rated.agreement[order]),
        fold=problem.fold[some],
        config=problem.config,
        seed=problem.seed + number,
    )


def _nothing() -> PreferencePairs:
    rows: Ints = np.zeros(0, np.int64)
    return PreferencePairs(rows, rows, np.zeros(0), np.zeros(0), np.zeros(0, np.bool_))


def _accuracy(deal: FitProblem, parameters: Parameters) -> float | None:
    members, (segments, steps, width) = deal.config.members, deal.inputs.shape
    with torch.no_grad():
        flat = deal.inputs.reshape(1, segments * steps, width).expand(members, -1, -1)
        scores = score(parameters, flat).reshape(members, segments, steps).numpy()
    pairs = evaluation.pairs_by_fold(deal.rated, deal.fold, members, deal.seed, deal.config.pairs)
    margins = evaluation.crossed_margins(evaluation.segment_scores(scores, deal.config.pooling), pairs)
    held = evaluation.heldout(pairs, margins, deal.rated.value)
    return accuracy(held.hits, held.pairs.confident)
