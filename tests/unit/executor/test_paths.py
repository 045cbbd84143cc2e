"""Paths over a room's grid: shortest, in rooms of both sizes, through narrow gaps, and quickly refused."""

import time
from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.trainer.executor.navigation_grid import NARROW, WIDE, NavigationGrid, Place, warp_tiles
from services.trainer.executor.path import corners, find_path
from shared.game.decoding.grid import Grid

SIZES = ((10, 8), (15, 11))


def grid(rows: list[str], full: int = 0x0F) -> Grid:
    """A room from text: `#` is a wall, `=` and `|` have a solid lower or left half, `o` is a hole; the rest is free."""
    values = {"#": full, "=": 0x03, "|": 0x0A, "o": 0x10}
    collisions = b"".join(bytes(values.get(letter, 0) for letter in row).ljust(16, b"\xff") for row in rows)
    return Grid(collisions.ljust(176, b"\xff"), len(rows[0]), len(rows))


def shortest(navigation: NavigationGrid, start: Place, goals: list[Place]) -> int | None:
    """The number of moves by breadth-first search."""
    depth, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        if here in goals:
            return depth[here]
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            there = here[0] + dx, here[1] + dy
            if navigation.is_free(there) and there not in depth:
                depth[there] = depth[here] + 1
                queue.append(there)
    return None


@settings(max_examples=150)
@given(st.data())
def test_path_is_as_short_as_a_search_of_all_places(data: st.DataObject) -> None:
    wide, high = data.draw(st.sampled_from(SIZES))
    rows = data.draw(st.lists(st.text("...#=|o", min_size=wide, max_size=wide), min_size=high, max_size=high))
    navigation = NavigationGrid(grid(rows), data.draw(st.sampled_from((WIDE, NARROW))))
    start = data.draw(st.tuples(st.integers(0, navigation.across - 1), st.integers(0, navigation.down - 1)))
    target = data.draw(st.tuples(st.integers(0, wide - 1), st.integers(0, high - 1)))
    goals = navigation.on_tile(target)
    path = find_path(navigation, {start: 0} if navigation.is_free(start) else {}, goals, (), ())
    moves = shortest(navigation, start, goals) if navigation.is_free(start) and goals else None
    assert (path is None) == (moves is None)
    if path is not None:
        assert len(path) - 1 == moves
        assert all(navigation.is_free(place) for place in path)
        assert all(abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1 for a, b in pairwise(path))
        assert navigation.tile(path[-1]) == target


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_place_and_its_position_belong_together(size: int) -> None:
    navigation = NavigationGrid(grid(["." * 15] * 11), size)
    for place in ((0, 0), (5, 7), (navigation.across - 1, navigation.down - 1)):
        x, y = navigation.position(place)
        assert navigation.near(x, y)[place] == 0
        assert navigation.tile(place) == (x >> 4, (y + 5) >> 4)


def test_gap_of_eight_pixels_is_narrow_but_not_wide() -> None:
    room = grid(["." * 10, "####|#####", *["." * 10] * 6])
    assert not NavigationGrid(room, WIDE).on_tile((4, 1))
    narrow = NavigationGrid(room, NARROW)
    path = find_path(narrow, {(0, 0): 0}, narrow.on_tile((7, 6)), (), ())
    assert path is not None
    assert (4, 1) in {narrow.tile(place) for place in path}


def test_holes_are_walked_around_and_doors_are_the_last_resort() -> None:
    navigation = NavigationGrid(grid(["." * 10, ".oooooooo.", *["." * 10] * 6]), WIDE)
    path = find_path(navigation, {(0, 0): 0}, navigation.on_tile((4, 4)), (), ())
    assert path is not None
    assert len(path) - 1 == shortest(navigation, (0, 0), navigation.on_tile((4, 4)))
    door = find_path(navigation, {(0, 0): 0}, navigation.on_tile((0, 4)), {(0, 2)}, ())
    assert door is not None
    assert (0, 2) not in {navigation.tile(place) for place in door}
    walled = NavigationGrid(grid(["." * 10, "." + "#" * 9, *["." * 10] * 6]), WIDE)
    assert find_path(walled, {(0, 0): 0}, walled.on_tile((4, 4)), {(0, 1)}, ()), "nothing else leads there"


def test_corners_keep_the_ends_and_every_turn() -> None:
    assert corners([(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]) == [(0, 0), (2, 0), (2, 2)]
    assert corners([(3, 3)]) == [(3, 3), (3, 3)]


def test_unreachable_tile_in_the_largest_room_is_refused_within_5_ms() -> None:
    rows = ["." * 15] * 9 + ["#" * 15] + ["." * 15]
    navigation = NavigationGrid(grid(rows), NARROW)
    times = []
    for _ in range(20):
        began = time.thread_time()
        assert find_path(navigation, {(0, 0): 0}, navigation.on_tile((14, 10)), (), ()) is None
        times.append(time.thread_time() - began)
    assert min(times) < 0.005


def test_warp_tiles_depend_on_where_the_room_is() -> None:
    tiles = bytes([0, 0xE8, 0x50]).ljust(176, b"\0")
    assert warp_tiles(tiles, outdoors=True) == {(1, 0)}
    assert warp_tiles(tiles, outdoors=False) == {(2, 0)}
