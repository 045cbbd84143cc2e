"""Turns states into observations obs/v1: 128 float32 in [-1, 1], in the order of layout.py.

One encoder per environment. Blocks that seldom change are kept as bytes and made anew only when what they show did; a
step then packs a few dozen numbers. The same states and actions give the same observations.
"""

import struct
from math import log1p
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from shared.game import blocks
from shared.game.layout import SIZE, UNKNOWN, VERSION
from shared.game.names import ACTIONS
from shared.game.state import GameState, Scene
from shared.game.trace import RECENT, EpisodeTrace

Observation = NDArray[np.float32]

_FLOAT32: Final = np.dtype("<f4")
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
_LOG_TILE, _LOG_ROOM = log1p(4095), log1p(65535)
_SINCE_TILE: Final = tuple(log1p(steps) / _LOG_TILE for steps in range(4096))
_SINCE_ROOM: Final = tuple(log1p(steps) / _LOG_ROOM for steps in range(4096))
_RECENT: Final = tuple(count / RECENT for count in range(RECENT + 1))
_NO_ENEMY, _NOBODY, _NOTHING = bytes(4 * 11), bytes(4 * 5), bytes(4 * 3)
_FLAG: Final = {None: blocks.pack(UNKNOWN), False: blocks.pack(0.0), True: blocks.pack(1.0)}
# By number of cells of 8 pixels across or down: where pixel 0 to 255 is, -1 at one edge and 1 at the other.
_PLACE: Final = {
    cells: tuple(blocks.clip(pixel / (cells * 4) - 1) for pixel in range(256)) for cells in (16, 20, 22, 30)
}
_WITHIN: Final = tuple((pixel & 15) / 7.5 - 1 for pixel in range(256))
_MOVED: Final = blocks.differences(8)


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
        self._scene: Scene | None = None
        self._before = self._after = b""  # what the scene shows before and after the block "screen"
        self._around = b""
        self._exits = b""
        self._screens: tuple[bytes, bytes] = (b"", b"")
        self._free: tuple[int, int, bytes] = (-1, -1, b"")
        self._new: tuple[int, int, bytes] = (-1, -1, b"")

    def begin(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The first observation of an episode: read-only float32 (128,)."""
        self._since_solved = RECENT
        self._new = (-1, -1, b"")
        return self.step(state, trace)

    def step(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The observation after a step: read-only float32 (128,)."""
        return np.frombuffer(self.step_bytes(state, trace), _FLOAT32)

    def step_bytes(self, state: GameState, trace: EpisodeTrace) -> bytes:
        """The observation after a step as 512 bytes."""
        if state.scene is not self._scene:
            self._look(state)
        x, y, enemies, people, things, dangers = (
            state.x, state.y, state.enemies, state.talkables, state.pickups, state.dangers,
        )  # fmt: skip
        return b"".join(
            (
                self._hero_bytes(state, trace),
                self._before,
                self._screens[state.control],
                self._after,
                self._solved_bytes(state.sounds),
                blocks.enemies(enemies, x, y) if enemies else _NO_ENEMY,
                blocks.people(people, x, y) if people else _NOBODY,
                blocks.nearest(things, x, y) if things else _NOTHING,
                blocks.nearest(dangers, x, y) if dangers else _NOTHING,
                self._free_bytes(state),
                self._exits,
                blocks.ahead(state.ahead, state.tile_ahead),
                self._around,
                self._new_bytes(state, trace),
                self._trace_bytes(trace),
            )
        )

    def _look(self, state: GameState) -> None:
        """Make anew what the scene shows."""
        grid, season = state.grid, state.season
        self._scene = state.scene
        self._before = (
            blocks.pack(
                *(UNKNOWN if flag is None else flag for flag in (state.airborne, state.swimming, state.holding))
            )
            + blocks.place(state)
            + (_NO_SEASON if season is None else _ONE_HOT[season])
            + blocks.owned(state)
        )
        self._screens = self._screen(state, False), self._screen(state, True)
        self._after = blocks.puzzle(state.puzzle)
        self._exits, self._around = blocks.exits(grid), blocks.neighbours(state.neighbours)
        self._across, self._down = _PLACE[grid.width], _PLACE[grid.height]
        self._free, self._new = (-1, -1, b""), (-1, -1, b"")

    def _screen(self, state: GameState, control: bool) -> bytes:
        dialog = state.dialog
        flags = (
            control,
            (dialog is not None) if self._dialog else None,
            (dialog is not None and dialog.waiting) if self._dialog else None,
            (dialog is not None and dialog.choosing) if self._choice else None,
            None if state.menu is None else state.menu != 0,
            state.transition,
            state.cutscene,
            state.dying,
        )
        return blocks.pack(*(UNKNOWN if flag is None else flag for flag in flags))

    def _hero_bytes(self, state: GameState, trace: EpisodeTrace) -> bytes:
        x, y = state.x, state.y
        moved_x, moved_y = trace.moved
        return _HERO(
            self._across[x],
            self._down[y],
            _WITHIN[x],
            _WITHIN[y],
            *_FACING[state.facing],
            _MOVED[moved_x],
            _MOVED[moved_y],
            state.invincible,
            state.knockback,
        )

    def _solved_bytes(self, sounds: tuple[int, ...] | None) -> bytes:
        if sounds and not _SOLVED_SOUNDS.isdisjoint(sounds):
            self._since_solved = 0
        elif self._since_solved < RECENT:
            self._since_solved += 1
        return _FLAG[None if sounds is None else self._since_solved < RECENT]

    def _free_bytes(self, state: GameState) -> bytes:
        x, y = state.x, state.y
        column, row = x >> 3, (y + 3) >> 3
        known = self._free
        if known[0] != column or known[1] != row:
            known = self._free = column, row, blocks.free(state.grid, x, y)
        return known[2]

    def _new_bytes(self, state: GameState, trace: EpisodeTrace) -> bytes:
        place, version = trace.place, trace.version
        known = self._new
        if known[0] != place or known[1] != version:
            known = self._new = place, version, blocks.frontier(state, trace)
        return known[2]

    def _trace_bytes(self, trace: EpisodeTrace) -> bytes:
        tile, room, streak, actions = trace.since_tile, trace.since_room, trace.streak, trace.actions
        return _TRACE(
            _SINCE_TILE[tile] if tile < 4096 else 1.0,
            _SINCE_ROOM[room] if room < 4096 else min(log1p(room) / _LOG_ROOM, 1.0),
            _RECENT[trace.moves],
            _RECENT[trace.presses],
            _RECENT[streak] if streak < RECENT else 1.0,
        ) + (_LAST[actions[-1]] if actions else _NO_ACTION)
