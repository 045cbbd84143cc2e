"""Pairs of segments that a judge compared directly, as training labels beside or instead of ratings.

A pair trains a member only if it knows neither episode from its held-out or its validation fold. With few pairs that is
dear: of five members, one trains on 9 of 25 pairs. So a pair with only one episode of the validation fold validates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from services.rewardmodel.domain import folds
from services.rewardmodel.domain.preferences import (
    Ints,
    PairBlock,
    PairBlocks,
    PairingConfig,
    PreferencePairs,
    Reals,
    pairs_at,
    stack_blocks,
)

CERTAIN: Final = 0.95
"""Most certainty of a label. A judge without probabilities says 1, and no finite difference of scores satisfies 1."""


@dataclass(frozen=True, slots=True)
class PairLabel:
    """Two rows of the training data and the probability that the first is better; 0.5 is a tie."""

    first: int
    second: int
    label: float


def to_preferences(labels: Sequence[PairLabel]) -> PreferencePairs:
    """The labels as arrays, each of weight 1."""
    target = np.array([one.label for one in labels], np.float64)
    return PreferencePairs(
        first=np.array([one.first for one in labels], np.int64),
        second=np.array([one.second for one in labels], np.int64),
        target=np.clip(target, 1 - CERTAIN, CERTAIN),
        weight=np.ones(len(labels)),
        confident=np.abs(target - 0.5) > 1e-9,
    )


def training_pairs(pairs: PreferencePairs, fold: Ints, member: int, members: int) -> PreferencePairs:
    """Pairs that train this member; `fold` is (n,)."""
    known = np.isin(np.arange(len(fold)), folds.training_rows(fold, member, members))
    return pairs_at(pairs, np.flatnonzero(known[pairs.first] & known[pairs.second]))


def validation_pairs(pairs: PreferencePairs, fold: Ints, member: int, members: int) -> PreferencePairs:
    """Pairs that stop this member's training early: one or both of their episodes are of its validation fold."""
    first, second = fold[pairs.first], fold[pairs.second]
    heldout, validation = folds.heldout_fold(member, members), folds.validation_fold(member, members)
    unseen = (first != heldout) & (second != heldout)
    return pairs_at(pairs, np.flatnonzero(unseen & ((first == validation) | (second == validation))))


def heldout_pairs(pairs: PreferencePairs, fold: Ints) -> PreferencePairs:
    """Pairs with a winner whose two episodes are held out from one member, which is then their fold's number."""
    return pairs_at(pairs, np.flatnonzero((fold[pairs.first] == fold[pairs.second]) & pairs.confident))


def heldout_accuracy(pairs: PreferencePairs, scores: Reals) -> float | None:
    """Share of `pairs` (from `heldout_pairs`) in the judge's order, by each segment's held-out score (n,)."""
    if not len(pairs):
        return None
    margin = scores[pairs.first] - scores[pairs.second]
    return float(np.mean((np.sign(margin) * np.sign(pairs.target - 0.5) + 1) / 2))


def compared_blocks(pairs: PreferencePairs, rng: np.random.Generator, config: PairingConfig) -> PairBlocks | None:
    """Minibatches of compared pairs alone, each of as many rows as one of ratings."""
    if not len(pairs):
        return None
    parts = np.array_split(rng.permutation(len(pairs)), -(-2 * len(pairs) // config.block))
    return stack_blocks([_appended(None, pairs_at(pairs, part)) for part in parts if len(part)], config.tie_share)


def with_compared(
    blocks: Sequence[PairBlock], rounds: int, pairs: PreferencePairs, rng: np.random.Generator
) -> list[PairBlock]:
    """Deal the compared pairs out among the blocks of each round of ratings.

    A comparison is one opinion, as a rating is: it weighs as much as all pairs of one rated segment.
    """
    found: list[PairBlock] = []
    for of_round in np.array_split(np.arange(len(blocks)), rounds):
        parts = np.array_split(rng.permutation(len(pairs)), len(of_round))
        found += [_appended(blocks[k], pairs_at(pairs, part)) for k, part in zip(of_round, parts, strict=True)]
    return found


def weight_of_one(weight: Reals, rows: int) -> float:
    """The weight of one comparison beside pairs of these weights (P,) that come from ratings of so many rows."""
    return float(weight.sum()) / rows if rows else 1.0


def _appended(block: PairBlock | None, pairs: PreferencePairs) -> PairBlock:
    """The block with two more rows for each compared pair; a new block for None."""
    count, begin = len(pairs), 0 if block is None else len(block.rows)
    own = PairBlock(
        rows=np.concatenate([pairs.first, pairs.second]),
        first=begin + np.arange(count),
        second=begin + count + np.arange(count),
        target=pairs.target,
        weight=pairs.weight * (1.0 if block is None else weight_of_one(block.weight, len(block.rows))),
        ties=~pairs.confident,
    )
    if block is None:
        return own
    return PairBlock(*(np.concatenate([one, other]) for one, other in zip(block, own, strict=True)))
