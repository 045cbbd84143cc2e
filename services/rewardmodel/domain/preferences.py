"""Scores into preferences: which segments are compared, how surely one is better, and how much a pair weighs.

Pairs of pointwise scores are not independent: n ratings give n(n-1)/2 pairs but only n opinions. So every segment is
in at most `cap` pairs. They come in blocks of a few dozen segments, because a minibatch then scores each segment once
instead of once per pair.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

MIN_PAIR_WEIGHT: Final = 0.25  # of a pair whose votes never agreed: a doubtful opinion is still one


@dataclass(frozen=True)
class PairingConfig:
    """How pairs are made. Scores and margins are in [0, 1]."""

    margin: float = 0.05  # a difference up to it is a tie; larger loses real preferences, smaller trains on noise
    noise: float = 0.03  # standard error of a score that no vote shows; 0 would turn soft labels into hard ones
    cap: int = 20  # most pairs a segment is in, at least 2; more cost time and repeat the same opinion
    block: int = 64  # segments in a minibatch
    tie_share: float = 0.2  # most of the total weight that ties may have: they only say "no difference"


@dataclass(frozen=True)
class RatingArrays:
    """Ratings as arrays (n,)."""

    value: Reals
    standard_error: Reals
    agreement: Reals


@dataclass(frozen=True)
class PreferencePairs:
    """P comparisons of rows: probability that `first` is better, weight, and whether the scores differ at all."""

    first: Ints
    second: Ints
    target: Reals
    weight: Reals
    confident: NDArray[np.bool_]

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.first)


@dataclass(frozen=True)
class PairBlocks:
    """K minibatches: `rows` (K, B) of the data, and pairs (K, P) as positions within the block; weight 0 is padding."""

    rows: Ints
    first: Ints
    second: Ints
    target: Reals
    weight: Reals

    @property
    def pairs(self) -> int:
        """Number of pairs in all blocks."""
        return int(np.count_nonzero(self.weight))

    def flat(self) -> PreferencePairs:
        """The same pairs without their blocks."""
        used = self.weight > 0
        first = np.take_along_axis(self.rows, self.first, 1)[used]
        second = np.take_along_axis(self.rows, self.second, 1)[used]
        target = self.target[used]
        return PreferencePairs(first, second, target, self.weight[used], target != 0.5)


def label_pairs(rated: RatingArrays, first: Ints, second: Ints, config: PairingConfig) -> PreferencePairs:
    """Label pairs of rows: the probability that the first scores higher, given how far the votes were apart."""
    difference = rated.value[first] - rated.value[second]
    spread = np.sqrt(rated.standard_error[first] ** 2 + rated.standard_error[second] ** 2 + 2 * config.noise**2)
    confident = np.abs(difference) > config.margin + 1e-9
    target = np.where(confident, ndtr(difference / np.maximum(spread, 1e-9)), 0.5)
    agreement = (rated.agreement[first] + rated.agreement[second]) / 2
    weight = MIN_PAIR_WEIGHT + (1.0 - MIN_PAIR_WEIGHT) * agreement
    return PreferencePairs(first, second, target, weight, confident)


def sample_pairs(
    rated: RatingArrays, rows: Ints, rng: np.random.Generator, config: PairingConfig, cap: int = 60
) -> PreferencePairs:
    """Random pairs within `rows`, each row in at most `cap`; all of them when the rows are few."""
    order = rng.permutation(rows)
    first, second = _around(len(order), _offsets(len(order), cap // 2, rng))
    return label_pairs(rated, order[first], order[second], config)


def training_blocks(
    rated: RatingArrays, rows: Ints, rng: np.random.Generator, config: PairingConfig
) -> PairBlocks | None:
    """Minibatches over `rows`, each row in at most `rules.cap` pairs; None if fewer than two rows.

    With more rows than one block holds there are two rounds with different neighbours, so that blocks are connected.
    A round gives every row two partners or more, so a cap below two rounds of that allows only one.
    """
    if len(rows) < 2:
        return None
    rounds = 1 if len(rows) <= config.block or config.cap < 2 * 2 else 2
    parts = [
        part
        for _ in range(rounds)
        for part in np.array_split(rng.permutation(rows), -(-len(rows) // config.block))
        if len(part) > 1
    ]
    return _stack(rated, parts, config.cap // (2 * rounds), rng, config)


def _stack(
    rated: RatingArrays, parts: list[Ints], reach: int, rng: np.random.Generator, config: PairingConfig
) -> PairBlocks:
    """Put blocks of unequal size into common arrays and scale the weight of ties."""
    found = [_block(rated, part, reach, rng, config) for part in parts]
    size, most = max(len(part) for part in parts), max(len(pairs) for pairs, _, _ in found)
    shape = (len(parts), most)
    first, second = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    target, weight = np.full(shape, 0.5), np.zeros(shape)
    rows = np.stack([np.resize(part, size) for part in parts])
    ties = np.zeros(shape, np.bool_)
    for k, (pairs, left, right) in enumerate(found):
        count = len(pairs)
        first[k, :count], second[k, :count] = left, right
        target[k, :count], weight[k, :count], ties[k, :count] = pairs.target, pairs.weight, ~pairs.confident
    return PairBlocks(rows, first, second, target, _limit_ties(weight, ties, config.tie_share))


def _block(
    rated: RatingArrays, part: Ints, reach: int, rng: np.random.Generator, config: PairingConfig
) -> tuple[PreferencePairs, Ints, Ints]:
    """Pairs of one block and their positions in it. Half of them far apart in score, where judges are surest."""
    ranked = np.argsort(rated.value[part] + rng.uniform(0, 1e-6, len(part)))
    left, right = _around(len(part), _offsets(len(part), reach, rng, far=True))
    left, right = ranked[left], ranked[right]
    return label_pairs(rated, part[left], part[right], config), left, right


def _offsets(size: int, count: int, rng: np.random.Generator, far: bool = False) -> Ints:
    """Distances on a circle of `size` rows; each gives every row two partners. With `far`, half are large."""
    every = np.arange(1, size // 2 + 1)
    if len(every) <= count:
        return every
    if not far:
        return rng.choice(every, count, replace=False)
    distant = every[len(every) // 2 :]
    some = rng.choice(distant, min(count // 2, len(distant)), replace=False)
    return np.concatenate([some, rng.choice(np.setdiff1d(every, some), count - len(some), replace=False)])


def _around(size: int, offsets: Ints) -> tuple[Ints, Ints]:
    """Every row with its partners; opposite rows of an even circle meet once, not twice."""
    if not len(offsets):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    first = [np.arange(size // 2 if 2 * offset == size else size) for offset in offsets]
    second = [(rows + offset) % size for rows, offset in zip(first, offsets, strict=True)]
    return np.concatenate(first), np.concatenate(second)


def _limit_ties(weight: Reals, ties: NDArray[np.bool_], share: float) -> Reals:
    of_ties, of_rest = weight[ties].sum(), weight[~ties].sum()
    allowed = share / (1.0 - share) * of_rest
    if of_rest > 0 and of_ties > allowed:
        weight = np.where(ties, weight * (allowed / of_ties), weight)
    return weight
