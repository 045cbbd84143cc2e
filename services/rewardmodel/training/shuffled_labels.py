"""The shuffled-label baseline: the same training on scores that are permuted among the segments.

The labels carry no information, so held-out accuracy must be one half. A higher one reveals a leak between training
and held-out pairs.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import torch

from services.rewardmodel.domain.metrics import accuracy
from services.rewardmodel.domain.preferences import Ints, PairBlocks, PreferencePairs, RatingArrays, no_pairs, pairs_at
from services.rewardmodel.training import evaluation
from services.rewardmodel.training.ensemble import Parameters, forward
from services.rewardmodel.training.fit import LIGHT
from services.rewardmodel.training.fit_problem import FitProblem, fit_members, fresh_parameters

MAX_SEGMENTS: Final = 600  # the expected accuracy is one half at any size
STEPS: Final = 100  # enough to memorise the training pairs, which is what a leak would reveal


def shuffled_accuracy(problem: FitProblem, should_cancel: Callable[[], bool]) -> float | None:
    """Mean held-out accuracy on confident pairs over several shuffles; None without such pairs.

    Held-out labels are shuffled as well: under an honest split nothing predicts them.
    """
    config = problem.config
    shuffles = config.shuffles * _multiplier(len(problem.fold))
    problems = [_shuffled(problem, number) for number in range(shuffles)]
    blocks: list[PairBlocks | None] = [block for shuffled in problems for block in shuffled.blocks()]
    if not blocks or all(block is None or not block.pairs for block in blocks):
        return None
    short = replace(config.fit, unvalidated_steps=STEPS, min_steps=STEPS, max_steps=STEPS, strata=4)
    start = fresh_parameters(problem, len(blocks))
    validation, regularisations = [no_pairs()] * len(blocks), [LIGHT] * len(blocks)
    fitted = fit_members(problems[0], blocks, validation, start, regularisations, short, should_cancel)
    accuracies = []
    for number, shuffled in enumerate(problems):
        members = slice(number * config.members, (number + 1) * config.members)
        parameters = {name: tensor[members] for name, tensor in fitted.parameters.items()}
        accuracies.append(_heldout_accuracy(shuffled, parameters))
    known = [value for value in accuracies if value is not None]
    return float(np.mean(known)) if known else None


def _multiplier(segments: int) -> int:
    """Use up to three times more shuffles for few segments: each is less precise, and cheaper."""
    return min(3, max(1, 300 // max(segments, 1)))


def _shuffled(problem: FitProblem, number: int) -> FitProblem:
    """The problem on at most MAX_SEGMENTS of its segments, with the scores permuted among them."""
    some = np.random.default_rng([problem.seed, 5]).permutation(len(problem.fold))[:MAX_SEGMENTS]
    order = some[np.random.default_rng([problem.seed, 6, number]).permutation(len(some))]
    rated = problem.rated
    return FitProblem(
        inputs=problem.inputs[torch.from_numpy(some)],
        rated=RatingArrays(rated.value[order], rated.standard_error[order], rated.agreement[order]),
        fold=problem.fold[some],
        config=problem.config,
        seed=problem.seed + number,
        compared=_moved(problem.compared, order, len(problem.fold)),
    )


def _moved(pairs: PreferencePairs, order: Ints, rows: int) -> PreferencePairs:
    """The compared pairs between the segments that got the scores of theirs; `order` holds the rows of the scores."""
    place = np.full(rows, -1)
    place[order] = np.arange(len(order))
    kept = pairs_at(pairs, np.flatnonzero((place[pairs.first] >= 0) & (place[pairs.second] >= 0)))
    return replace(kept, first=place[kept.first], second=place[kept.second])


def _heldout_accuracy(problem: FitProblem, parameters: Parameters) -> float | None:
    members, (segments, steps, width) = problem.config.members, problem.inputs.shape
    with torch.no_grad():
        flat = problem.inputs.reshape(1, segments * steps, width).expand(members, -1, -1)
        scores = forward(parameters, flat).reshape(members, segments, steps).numpy()
    pairs = evaluation.pairs_by_fold(problem.rated, problem.fold, members, problem.seed, problem.config.pairs)
    margins = evaluation.heldout_margins(evaluation.segment_scores(scores, problem.config.pooling), pairs)
    heldout = evaluation.join_folds(pairs, margins, problem.rated.value)
    return accuracy(heldout.hits, heldout.pairs.confident)
