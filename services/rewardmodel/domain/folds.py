"""Assigns episodes to folds: the split that keeps the held-out figures of the card valid.

Segments of one episode resemble each other, and one segment is in many pairs. So the split is by episode, never by
segment or pair. Fold m is held out for member m, fold m + 1 stops its training early, and the other folds train it. The
fold depends on the run's seed and the episode's name only: a model that is trained further in the next epoch never
trains on its held-out episodes, and two runs with equal seeds split equally.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from shared.contracts.ids import EpisodeId

Ints = NDArray[np.int64]


def fold_of(run_seed: int, episode: EpisodeId, folds: int) -> int:
    """The fold of an episode, 0 to `folds` - 1; the same in every epoch and every process."""
    digest = hashlib.sha256(f"{run_seed}/{episode}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % folds


def heldout_fold(member: int, folds: int) -> int:
    """The fold that evaluates this member."""
    return member % folds


def validation_fold(member: int, folds: int) -> int:
    """The fold that stops this member's training early."""
    return (member + 1) % folds


def training_rows(fold: Ints, member: int, folds: int) -> Ints:
    """Rows that train this member: neither held out nor used for early stopping. `fold` is (n,)."""
    return np.flatnonzero((fold != heldout_fold(member, folds)) & (fold != validation_fold(member, folds)))


def rows_of(fold: Ints, wanted: int) -> Ints:
    """Rows of the fold `wanted`; `fold` is (n,)."""
    return np.flatnonzero(fold == wanted)
