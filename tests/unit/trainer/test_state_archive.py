"""The state archive keeps the best path into each cell, and returns to cells by novelty, by score or at random."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer.state_archive.archive import ArchiveEntry, PathQuality, StateArchive, is_better, is_cheaper
from services.trainer.state_archive.cell import ArchiveCell, coarse_tile
from services.trainer.state_archive.coverage import archived_rooms
from services.trainer.state_archive.selection import SELECTIONS, select, weights
from shared.contracts.learning.restarts import RestartSelection
from shared.game.observation import counters

QUALITIES = st.builds(PathQuality, hearts=st.integers(1, 5), steps=st.integers(1, 500))
CELLS = st.builds(
    ArchiveCell,
    st.just(0),
    st.integers(0, 2),
    st.integers(0, 1),
    st.just(0),
    st.tuples(st.integers(0, 2), st.integers(0, 1)),
)
EQUAL = PathQuality(hearts=3, steps=10)
UNVISITED = (0,) * 30
PATHS = st.lists(st.tuples(CELLS, QUALITIES), min_size=1, max_size=30)
VISITS = st.lists(st.integers(0, 1_000), min_size=30, max_size=30)


def entry(number: int, cell: ArchiveCell, quality: PathQuality = EQUAL, parent: int | None = None) -> ArchiveEntry:
    return ArchiveEntry(number, cell, parent, number, bytes([number % 8]), quality, "digest")


def archive_of(paths: list[tuple[ArchiveCell, PathQuality]], visits: Sequence[int] = UNVISITED) -> StateArchive:
    archive = StateArchive()
    for (cell, quality), count in zip(paths, visits, strict=False):
        if archive.wants(cell, quality):
            last = len(archive.entries)
            archive.add(entry(last, cell, quality, last - 1 if last else None))
        archive.visits[cell] = count
    return archive


@settings(max_examples=30, deadline=None)
@given(PATHS)
def test_no_offered_path_beats_the_one_that_is_kept(paths: list[tuple[ArchiveCell, PathQuality]]) -> None:
    archive = archive_of(paths)
    assert {one.cell for one in archive.best()} == {cell for cell, _ in paths}
    for cell, quality in paths:
        kept = archive.best_of(cell)
        assert kept is not None
        assert not is_better(quality, kept.quality)


@settings(max_examples=30, deadline=None)
@given(QUALITIES, QUALITIES)
def test_of_two_paths_at_most_one_is_better(one: PathQuality, other: PathQuality) -> None:
    assert not (is_better(one, other) and is_better(other, one))
    assert not is_better(one, one)
    assert not (is_cheaper(one, other) and is_cheaper(other, one))
    assert not is_cheaper(one, one)


def test_a_demonstration_takes_a_longer_way_for_a_heart_where_few_are_left() -> None:
    assert is_cheaper(PathQuality(hearts=2, steps=250), PathQuality(hearts=1, steps=100))
    assert not is_cheaper(PathQuality(hearts=4, steps=250), PathQuality(hearts=3, steps=100))
    assert is_better(PathQuality(hearts=4, steps=250), PathQuality(hearts=3, steps=100)), "an exploration takes it"


@settings(max_examples=30, deadline=None)
@given(PATHS)
def test_a_trajectory_leads_from_the_true_start_to_its_entry(paths: list[tuple[ArchiveCell, PathQuality]]) -> None:
    archive = archive_of(paths)
    last = archive.entries[-1]
    assert [part.seed for part in archive.trajectory(last)] == list(range(last.number + 1))


@settings(max_examples=30, deadline=None)
@given(PATHS, VISITS, st.integers(0, 30))
def test_coverage_counts_each_cell_and_visit_once(
    paths: list[tuple[ArchiveCell, PathQuality]], visits: list[int], first: int
) -> None:
    archive = archive_of(paths, visits)
    rooms = archived_rooms(archive, first)
    assert sum(one.cells for one in rooms) == len(archive)
    assert sum(one.visits for one in rooms) == sum(archive.visits.values())
    before = {one.cell for one in archive.entries[:first]}
    assert sum(one.new_cells for one in rooms) == len(archive) - len(before)


@settings(max_examples=30, deadline=None)
@given(PATHS, VISITS, st.sampled_from(SELECTIONS))
def test_every_cell_may_be_chosen_and_probabilities_sum_to_one(
    paths: list[tuple[ArchiveCell, PathQuality]], visits: list[int], name: RestartSelection
) -> None:
    archive = archive_of(paths, visits)
    found = weights(archive, list(archive.best()), name, lambda one: float(one.cell.room))
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()


@settings(max_examples=30, deadline=None)
@given(PATHS, VISITS)
def test_the_order_of_cells_does_not_matter_to_novelty(
    paths: list[tuple[ArchiveCell, PathQuality]], visits: list[int]
) -> None:
    archive = archive_of(paths, visits)
    entries = list(archive.best())
    forward, backward = weights(archive, entries, "novelty"), weights(archive, entries[::-1], "novelty")
    assert forward == pytest.approx(backward[::-1])


def test_a_single_new_achievement_weighs_as_much_as_many_known_cells() -> None:
    known = [(ArchiveCell(0, room, column, 0, (0,)), PathQuality(3, 1)) for room in range(3) for column in range(4)]
    archive = archive_of([*known, (ArchiveCell(0, 0, 0, 0, (1,)), PathQuality(3, 1))], [50] * 12 + [0])
    found = weights(archive, list(archive.best()), "novelty")
    assert found[-1] > found[:-1].sum()


def test_play_goes_on_where_most_was_achieved_and_not_in_each_part_of_it() -> None:
    parts = [(ArchiveCell(0, 0, 0, 0, counts), EQUAL) for counts in ((2, 0, 0), (0, 2, 0), (0, 0, 2), (1, 1, 0))]
    archive = archive_of([*parts, (ArchiveCell(0, 0, 0, 0, (2, 1, 0)), EQUAL)], [9] * 5)
    found = weights(archive, list(archive.best()), "novelty")
    assert found[-1] > found[:-1].sum()


def test_judges_prefer_the_highest_score_and_rare_cells_of_it() -> None:
    cells = [ArchiveCell(0, room, 0, 0, (0,)) for room in range(3)]
    archive = archive_of([(cell, PathQuality(3, 1)) for cell in cells], [0, 0, 99])
    low, high, visited = weights(archive, list(archive.best()), "judges", lambda one: float(one.cell.room > 0))
    assert high > low > visited


def test_judges_without_a_reward_model_are_refused() -> None:
    archive = archive_of([(ArchiveCell(0, 0, 0, 0, (0,)), PathQuality(3, 1))])
    with pytest.raises(ValueError, match="score of a reward model"):
        select(archive, 1, np.random.default_rng(0), "judges")


def test_an_empty_archive_has_nothing_to_return_to() -> None:
    with pytest.raises(ValueError, match="an empty archive"):
        select(StateArchive(), 1, np.random.default_rng(0), "novelty")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (entry(5, ArchiveCell(0, 9, 0, 0, ())), "the next number is 1"),
        (entry(1, ArchiveCell(0, 9, 0, 0, ()), parent=1), "not an earlier entry"),
        (entry(1, ArchiveCell(0, 0, 0, 0, ())), "a path that is as good"),
    ],
)
def test_an_entry_that_does_not_fit_is_refused(wrong: ArchiveEntry, reason: str) -> None:
    archive = StateArchive()
    archive.add(entry(0, ArchiveCell(0, 0, 0, 0, ())))
    with pytest.raises(ValueError, match=reason):
        archive.add(wrong)


def test_neither_cells_nor_entries_hold_milestones() -> None:
    assert {*counters.LASTING} < {*counters.NAMES}
    names = {*ArchiveCell._fields, *(field.name for field in fields(ArchiveEntry)), *counters.LASTING}
    assert not [name for name in names if "milestone" in name]


def test_a_coarse_tile_is_two_tiles_wide_below_the_feet() -> None:
    assert coarse_tile(31, 26) == (0, 0)
    assert coarse_tile(32, 27) == (1, 1)
