"""Which member of the ensemble sees which episode: the split that keeps every figure on the card honest.

Segments of one episode resemble each other, and one segment is in many pairs; so whole episodes are split, never
segments or pairs. Fold m is held out for member m, fold m+1 stops its training early, and the others train it. The
fold depends on the names alone: a model that is trained further next epoch never meets what it is measured on.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from shared.contracts.ids import EpisodeId, RunId

Ints = NDArray[np.int64]


def fold_of(run: RunId, episode: EpisodeId, folds: int) -> int:
    """The fold of an episode, 0 to `folds` - 1; the same in every epoch and every process."""
    digest = hashlib.sha256(f"{run}/{episode}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % folds


def heldout(member: int, folds: int) -> int:
    """The fold that measures this member."""
    return member % folds


def validation(member: int, folds: int) -> int:
    """The fold that decides when this member stops."""
    return (member + 1) % folds


def training_rows(fold: Ints, member: int, folds: int) -> Ints:
    """Rows that train this member: neither held out nor used for stopping."""
    return np.flatnonzero((fold != heldout(member, folds)) & (fold != validation(member, folds)))


def rows_of(fold: Ints, wanted: int) -> Ints:
    """Rows of one fold."""
    return np.flatnonzero(fold == wanted)
