"""Turns ratings into preferences: which segments are compared, how confident a preference is, and its weight.

Pairs of pointwise ratings are not independent: n ratings give n(n-1)/2 pairs but only n opinions. So each segment is in
at most `cap` pairs. Pairs come in blocks of a few dozen segments, so that a minibatch scores each segment once instead
of once per pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

MIN_PAIR_WEIGHT: Final = 0.25  # of a pair whose votes never agreed: a doubtful opinion still counts


@dataclass(frozen=True)
class PairingConfig:
    """How pairs are made. Scores and margins are in [0, 1]."""

    margin: float = 0.05  # up to it a difference is a tie; larger loses real preferences, smaller trains on noise
    noise: float = 0.03  # standard error of a score beyond its votes; 0 would make every label hard
    cap: int = 20  # maximum pairs per segment, at least 2; more cost time and repeat the same opinion
    block: int = 64  # segments per minibatch
    tie_share: float = 0.2  # maximum share of ties in the total weight: they only say "no difference"


@dataclass(frozen=True)
class RatingArrays:
    """n ratings as arrays (n,)."""

    value: Reals
    standard_error: Reals
    agreement: Reals


@dataclass(frozen=True)
class PreferencePairs:
    """P comparisons of rows. `target` is the probability that `first` is better; `confident` pairs are no ties."""

    first: Ints
    second: Ints
    target: Reals
    weight: Reals
    confident: NDArray[np.bool_]

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.first)


def no_pairs() -> PreferencePairs:
    """No comparison."""
    rows: Ints = np.zeros(0, np.int64)
    return PreferencePairs(rows, rows, np.zeros(0), np.zeros(0), np.zeros(0, np.bool_))


def pairs_at(pairs: PreferencePairs, places: Ints) -> PreferencePairs:
    """The comparisons at these positions."""
    return PreferencePairs(
        pairs.first[places], pairs.second[places], pairs.target[places], pairs.weight[places], pairs.confident[places]
    )


def join_pairs(parts: Sequence[PreferencePairs]) -> PreferencePairs:
    """The comparisons of all parts, in order; at least one part."""
    return PreferencePairs(
        first=np.concatenate([part.first for part in parts]),
        second=np.concatenate([part.second for part in parts]),
        target=np.concatenate([part.target for part in parts]),
        weight=np.concatenate([part.weight for part in parts]),
        confident=np.concatenate([part.confident for part in parts]),
    )


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

    def flatten(self) -> PreferencePairs:
        """The pairs of all blocks, as rows of the data."""
        used = self.weight > 0
        first = np.take_along_axis(self.rows, self.first, 1)[used]
        second = np.take_along_axis(self.rows, self.second, 1)[used]
        target = self.target[used]
        return PreferencePairs(first, second, target, self.weight[used], target != 0.5)


def label_pairs(rated: RatingArrays, first: Ints, second: Ints, config: PairingConfig) -> PreferencePairs:
    """Label pairs of rows (P,) with the probability that the first is better, given both standard errors."""
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
    """Sample random pairs within `rows`, each row in at most `cap`; few rows give all their pairs."""
    order = rng.permutation(rows)
    first, second = _circular_pairs(len(order), _draw_offsets(len(order), cap // 2, rng))
    return label_pairs(rated, order[first], order[second], config)


class PairBlock(NamedTuple):
    """One minibatch: `rows` (B,) of the data, and its pairs (P,) as positions among them."""

    rows: Ints
    first: Ints
    second: Ints
    target: Reals
    weight: Reals
    ties: NDArray[np.bool_]


def rating_blocks(
    rated: RatingArrays, rows: Ints, rng: np.random.Generator, config: PairingConfig
) -> tuple[list[PairBlock], int]:
    """Build minibatches over `rows`, each row in at most `config.cap` pairs; and the number of rounds.

    More rows than one block holds are dealt out in two rounds with different neighbours, which connects the blocks. A
    round gives every row at least two partners, so a cap below 4 allows one round only. Fewer than two rows give none.
    """
    if len(rows) < 2:
        return [], 1
    rounds = 1 if len(rows) <= config.block or config.cap < 2 * 2 else 2
    parts = [
        part
        for _ in range(rounds)
        for part in np.array_split(rng.permutation(rows), -(-len(rows) // config.block))
        if len(part) > 1
    ]
    return [_block(rated, part, config.cap // (2 * rounds), rng, config) for part in parts], rounds


def stack_blocks(blocks: Sequence[PairBlock], tie_share: float) -> PairBlocks | None:
    """Pad blocks of unequal size into common arrays, and limit the weight of ties; None without blocks."""
    if not blocks:
        return None
    size, most_pairs = max(len(block.rows) for block in blocks), max(len(block.first) for block in blocks)
    shape = (len(blocks), most_pairs)
    first, second = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    target, weight = np.full(shape, 0.5), np.zeros(shape)
    rows = np.stack([np.resize(block.rows, size) for block in blocks])
    ties = np.zeros(shape, np.bool_)
    for k, block in enumerate(blocks):
        count = len(block.first)
        first[k, :count], second[k, :count] = block.first, block.second
        target[k, :count], weight[k, :count], ties[k, :count] = block.target, block.weight, block.ties
    return PairBlocks(rows, first, second, target, _limit_ties(weight, ties, tie_share))


def _block(rated: RatingArrays, part: Ints, offsets: int, rng: np.random.Generator, config: PairingConfig) -> PairBlock:
    """One block. Half of its pairs are far apart in score, where judges agree."""
    ranked = np.argsort(rated.value[part] + rng.uniform(0, 1e-6, len(part)))
    left, right = _circular_pairs(len(part), _draw_offsets(len(part), offsets, rng, far=True))
    left, right = ranked[left], ranked[right]
    pairs = label_pairs(rated, part[left], part[right], config)
    return PairBlock(part, left, right, pairs.target, pairs.weight, ~pairs.confident)


def _draw_offsets(size: int, count: int, rng: np.random.Generator, far: bool = False) -> Ints:
    """Draw distances on a circle of `size` rows; each gives every row two partners. With `far`, half are large."""
    every = np.arange(1, size // 2 + 1)
    if len(every) <= count:
        return every
    if not far:
        return rng.choice(every, count, replace=False)
    distant = every[len(every) // 2 :]
    some = rng.choice(distant, min(count // 2, len(distant)), replace=False)
    return np.concatenate([some, rng.choice(np.setdiff1d(every, some), count - len(some), replace=False)])


def _circular_pairs(size: int, offsets: Ints) -> tuple[Ints, Ints]:
    """Pair every row with the rows at these distances; opposite rows of an even circle are paired once."""
    if not len(offsets):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    first = [np.arange(size // 2 if 2 * offset == size else size) for offset in offsets]
    second = [(rows + offset) % size for rows, offset in zip(first, offsets, strict=True)]
    return np.concatenate(first), np.concatenate(second)


def _limit_ties(weight: Reals, ties: NDArray[np.bool_], share: float) -> Reals:
    """Scale the weights of ties down to at most `share` of the total weight."""
    of_ties, of_others = weight[ties].sum(), weight[~ties].sum()
    allowed = share / (1.0 - share) * of_others
    if of_others > 0 and of_ties > allowed:
        weight = np.where(ties, weight * (allowed / of_ties), weight)
    return weight
