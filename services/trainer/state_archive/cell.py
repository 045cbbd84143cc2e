"""The cells of the state archive: where the hero is, and what the episode achieved for good.

A cell is group, room, coarse tile and the lasting event counters of the episode (counters/v1). It holds no milestone:
what measures progress must not guide it. Two states of one cell count as the same place to continue from.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from shared.game.decoding.grid import tile_of
from shared.game.decoding.state import GameState
from shared.game.observation.counters import LASTING

TILES_PER_CELL: Final = 2  # a cell spans 2 x 2 tiles; with single tiles the archive holds four times as many states


class ArchiveCell(NamedTuple):
    """One cell. `column` and `row` count coarse tiles; `counters` are in the order of LASTING."""

    group: int
    room: int
    column: int
    row: int
    counters: tuple[int, ...]


def parse_cell(data: Sequence[Any]) -> ArchiveCell:
    """The cell that was written as JSON. Raises ValueError or TypeError for anything else."""
    group, room, column, row, counters = data
    if len(counters) != len(LASTING):
        raise ValueError(f"a cell of another version: {len(counters)} lasting counters, not {len(LASTING)}")
    return ArchiveCell(int(group), int(room), int(column), int(row), tuple(map(int, counters)))


def coarse_tile(x: int, y: int, tiles: int = TILES_PER_CELL) -> tuple[int, int]:
    """Column and row of the coarse tile under the hero's feet, of `tiles` x `tiles` tiles."""
    column, row = tile_of(x, y)
    return column // tiles, row // tiles


def lasting(values: Mapping[str, int]) -> tuple[int, ...]:
    """The lasting counters of an episode's counters by name."""
    return tuple(values[name] for name in LASTING)


def cell_of(state: GameState, values: Mapping[str, int], tiles: int = TILES_PER_CELL) -> ArchiveCell:
    """The cell of a state whose episode has these counters."""
    return ArchiveCell(state.group, state.room, *coarse_tile(state.x, state.y, tiles), lasting(values))


def may_restart(state: GameState) -> bool:
    """Whether play may continue from this state: the hero has control and lives."""
    return state.control and not state.dying
