"""Which cells to return to: by novelty, by the judges, or at random. Selection never sees milestones.

Novelty counts visits at four scales (sum of the lasting counters, the counters themselves, room, cell), each paid
1/sqrt(visits + 1). With cells alone the many cells of well-known rooms would get almost all restarts. Without the sum
the many ways to a part of what is achieved would: few of them lead further than the one that achieved most.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from services.trainer.state_archive.archive import ArchiveEntry, StateArchive
from shared.contracts.learning.restarts import RestartSelection

SELECTIONS: Final[tuple[RestartSelection, ...]] = get_args(RestartSelection)
Score = Callable[[ArchiveEntry], float]
"""How far the judges' reward model values an entry."""

Weights = NDArray[np.float64]


def select(
    archive: StateArchive,
    count: int,
    rng: np.random.Generator,
    name: RestartSelection,
    score: Score | None = None,
    *,
    distinct: bool = False,
) -> list[ArchiveEntry]:
    """Draw `count` entries, with repetition; if `distinct`, without, and no more than there are.

    ValueError for an empty archive, or for judges without a score.
    """
    entries = list(archive.best())
    if not entries:
        raise ValueError("an empty archive has no state to return to")
    size = min(count, len(entries)) if distinct else count
    chosen = rng.choice(len(entries), size=size, replace=not distinct, p=weights(archive, entries, name, score))
    return [entries[place] for place in chosen]


def weights(
    archive: StateArchive, entries: Sequence[ArchiveEntry], name: RestartSelection, score: Score | None = None
) -> Weights:
    """The probability of each entry: positive, with sum 1."""
    if name == "random":
        return np.full(len(entries), 1 / len(entries))
    if name == "novelty":
        return by_novelty(archive, entries)
    if score is None:
        raise ValueError("selection by judges needs the score of a reward model")
    return by_score(archive, entries, [score(entry) for entry in entries])


def by_novelty(archive: StateArchive, entries: Sequence[ArchiveEntry]) -> Weights:
    """Draw a sum of lasting counters, then counters, then a room with them, then a cell, by 1/sqrt(visits + 1).

    Of the sums the highest counts in full, the second half, the third a third: play goes on where most was achieved.
    """
    cells = [entry.cell for entry in entries]
    visits = _visits(archive, entries)
    everything = np.zeros(len(cells), np.int64)
    sums, places = np.unique([-sum(cell.counters) for cell in cells], return_inverse=True)
    counters = _numbered([cell.counters for cell in cells])
    rooms = _numbered([(cell.counters, cell.group, cell.room) for cell in cells])
    each = np.arange(len(cells))
    chosen = _within(everything, places, visits, 1 / np.arange(1, len(sums) + 1))
    for outer, inner in pairwise((places, counters, rooms, each)):
        chosen = chosen * _within(outer, inner, visits)
    return chosen


def by_score(archive: StateArchive, entries: Sequence[ArchiveEntry], scores: Sequence[float]) -> Weights:
    """Draw a score by 1/rank, the best first, then an entry of that score by 1/sqrt(visits + 1)."""
    distinct, places = np.unique(-np.array(scores, np.float64), return_inverse=True)
    ranks: Weights = 1 / np.arange(1, len(distinct) + 1)
    each = np.arange(len(entries))
    chosen: Weights = (ranks / ranks.sum())[places]
    return chosen * _within(places, each, _visits(archive, entries))


def _visits(archive: StateArchive, entries: Sequence[ArchiveEntry]) -> Weights:
    return np.array([archive.visits[entry.cell] for entry in entries], np.float64)


def _numbered(keys: Sequence[Hashable]) -> NDArray[np.int64]:
    """The same number for equal keys, from 0."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _within(
    outer: NDArray[np.int64], inner: NDArray[np.int64], visits: Weights, worth: Weights | float = 1.0
) -> Weights:
    """The probability of each entry's inner group within its outer group; inner groups must not cross outer ones.

    `worth` multiplies the weight of each inner group.
    """
    rarity: Weights = worth / np.sqrt(np.bincount(inner, visits) + 1)
    outer_of = np.zeros(len(rarity), np.int64)
    outer_of[inner] = outer
    totals = np.bincount(outer_of, rarity)
    return rarity[inner] / totals[outer]
