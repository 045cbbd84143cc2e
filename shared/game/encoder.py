"""Turns states into observations obs/v1: 128 float32 in [-1, 1], in the order of layout.py.

One encoder per environment. Blocks that seldom change are kept as bytes and made anew only when what they show did; a
step then packs a few dozen numbers. The same states and actions give the same observations.
"""

import struct
from functools import lru_cache
from math import log1p
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from shared.game import blocks
from shared.game.blocks import clip
from shared.game.grid import Grid
from shared.game.layout import SIZE, UNKNOWN, VERSION
from shared.game.names import ACTIONS
from shared.game.state import GameState, Inventory, Puzzle
from shared.game.trace import RECENT, EpisodeTrace

Observation = NDArray[np.float32]

_SOLVED_SOUNDS: Final = frozenset({0x4D, 0x5B, 0x6C})
_HERO: Final = struct.Struct("<12f").pack
_TRACE: Final = struct.Struct("<5f").pack
_ONE_HOT: Final = tuple(blocks.pack(*(float(place == one) for place in range(4))) for one in range(4))
_FACING: Final = tuple(tuple(float(place == one) for place in range(4)) for one in range(4))
_NO_SEASON: Final = blocks.pack(*(UNKNOWN,) * 4)
_LAST: Final = tuple(
    blocks.pack(*(float(place == one) for place in range(len(ACTIONS)))) for one in range(len(ACTIONS))
)
_NO_ACTION: Final = bytes(4 * len(ACTIONS))
_SINCE_TILE: Final = tuple(log1p(steps) / log1p(4095) for steps in range(4096))
_LOG_STEPS: Final = log1p(65535)
_NO_ENEMY, _NOBODY, _NOTHING = bytes(4 * 11), bytes(4 * 5), bytes(4 * 3)
_FLAG: Final = {None: blocks.pack(UNKNOWN), False: blocks.pack(0.0), True: blocks.pack(1.0)}


class Encoder(Protocol):
    """The port behind which obs/v1 and pixels/v1 stand."""

    version: str
    shape: tuple[int, ...]

    def begin(self, state: GameState, trace: EpisodeTrace) -> NDArray[np.generic]:
        """The first observation of an episode."""
        ...

    def step(self, state: GameState, trace: EpisodeTrace) -> NDArray[np.generic]:
        """The observation after a step that `trace` has noted."""
        ...


class VectorEncoder:
    """The encoder of obs/v1."""

    version = VERSION
    shape: tuple[int, ...] = (SIZE,)

    def __init__(self, capabilities: frozenset[str]) -> None:
        self._dialog, self._choice = "dialog" in capabilities, "choice" in capabilities
        self._since_solved = RECENT
        self._place: tuple[tuple[object, ...], bytes] = ((), b"")
        self._owned: tuple[Inventory | None, int | None, bytes] = (None, None, b"")
        self._riddle: tuple[Puzzle | None, bytes] = (None, b"")
        self._exits: tuple[Grid | None, bytes] = (None, b"")
        self._free: tuple[tuple[object, ...], bytes] = ((), b"")
        self._new: tuple[tuple[object, ...], bytes] = ((), b"")

    def begin(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The first observation of an episode: read-only float32 (128,)."""
        self._since_solved = RECENT
        return self.step(state, trace)

    def step(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The observation after a step: read-only float32 (128,)."""
        return np.frombuffer(self.step_bytes(state, trace), np.float32)

    def step_bytes(self, state: GameState, trace: EpisodeTrace) -> bytes:
        """The observation after a step as 512 bytes."""
        enemies, people, things, dangers = state.enemies, state.talkables, state.pickups, state.dangers
        season = state.season
        return b"".join(
            (
                self._hero_bytes(state, trace),
                blocks.body(state.airborne, state.swimming, state.holding),
                self._place_bytes(state),
                _NO_SEASON if season is None else _ONE_HOT[season],
                self._owned_bytes(state),
                self._screen_bytes(state),
                self._puzzle_bytes(state),
                blocks.enemies(enemies, state.x, state.y) if enemies else _NO_ENEMY,
                blocks.people(people, state.x, state.y) if people else _NOBODY,
                blocks.nearest(things, state.x, state.y) if things else _NOTHING,
                blocks.nearest(dangers, state.x, state.y) if dangers else _NOTHING,
                self._walls_bytes(state),
                self._new_bytes(state, trace),
                self._trace_bytes(trace),
            )
        )

    def _hero_bytes(self, state: GameState, trace: EpisodeTrace) -> bytes:
        grid, x, y = state.grid, state.x, state.y
        up, right, down, left = _FACING[state.facing]
        moved_x, moved_y = trace.moved
        return _HERO(
            clip(x / (grid.width * 4) - 1),
            clip(y / (grid.height * 4) - 1),
            (x & 15) / 7.5 - 1,
            (y & 15) / 7.5 - 1,
            up,
            right,
            down,
            left,
            clip(moved_x / 8),
            clip(moved_y / 8),
            state.invincible,
            state.knockback,
        )

    def _place_bytes(self, state: GameState) -> bytes:
        key = (state.group, state.room, state.dungeon_position)
        if self._place[0] != key:
            self._place = key, blocks.place(state)
        return self._place[1]

    def _owned_bytes(self, state: GameState) -> bytes:
        known, own = self._owned, state.inventory
        if known[0] is not own or known[1] != state.dungeon:
            known = self._owned = own, state.dungeon, blocks.owned(state)
        return known[2]

    def _screen_bytes(self, state: GameState) -> bytes:
        dialog = state.dialog
        return _screen(
            state.control,
            (dialog is not None) if self._dialog else None,
            (dialog is not None and dialog.waiting) if self._dialog else None,
            (dialog is not None and dialog.choosing) if self._choice else None,
            None if state.menu is None else state.menu != 0,
            state.transition,
            state.cutscene,
            state.dying,
        )

    def _puzzle_bytes(self, state: GameState) -> bytes:
        puzzle, sounds = state.puzzle, state.sounds
        if sounds and not _SOLVED_SOUNDS.isdisjoint(sounds):
            self._since_solved = 0
        elif self._since_solved < RECENT:
            self._since_solved += 1
        if self._riddle[0] is not puzzle:
            self._riddle = puzzle, blocks.puzzle(puzzle)
        return self._riddle[1] + _FLAG[None if sounds is None else self._since_solved < RECENT]

    def _walls_bytes(self, state: GameState) -> bytes:
        """Walls, exits, the tile ahead, the rooms around."""
        grid = state.grid
        if self._exits[0] is not grid:
            self._exits = grid, blocks.exits(grid)
        cell = (grid, state.x >> 3, (state.y + 3) >> 3)
        if self._free[0] != cell:
            self._free = cell, blocks.free(grid, state.x, state.y)
        seen = blocks.ahead(state.ahead, state.tile_ahead) + blocks.neighbours(*state.neighbours)
        return self._free[1] + self._exits[1] + seen

    def _new_bytes(self, state: GameState, trace: EpisodeTrace) -> bytes:
        key = (trace.place, trace.version, state.room)
        if self._new[0] != key:
            self._new = key, blocks.frontier(state, trace)
        return self._new[1]

    def _trace_bytes(self, trace: EpisodeTrace) -> bytes:
        tile, actions = trace.since_tile, trace.actions
        return _TRACE(
            _SINCE_TILE[tile] if tile < 4096 else 1.0,
            min(log1p(trace.since_room) / _LOG_STEPS, 1.0),
            trace.moves / RECENT,
            trace.presses / RECENT,
            trace.streak / RECENT if trace.streak < RECENT else 1.0,
        ) + (_LAST[actions[-1]] if actions else _NO_ACTION)


@lru_cache(maxsize=1024)
def _screen(*flags: bool | None) -> bytes:
    """The screen block; its eight flags have few combinations."""
    return blocks.pack(*(UNKNOWN if flag is None else float(flag) for flag in flags))
