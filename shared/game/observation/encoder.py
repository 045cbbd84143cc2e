"""Turns states into observations obs/v1: 128 float32 in [-1, 1], in the order of layout.py.

One encoder per environment. Blocks that seldom change are cached as bytes and rebuilt only when their input changes; a
step packs a few dozen numbers. Equal states and actions give equal observations.
"""

import struct
from math import log1p
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from shared.game.decoding.names import ACTIONS
from shared.game.decoding.state import GameState, Scene
from shared.game.observation import blocks
from shared.game.observation.layout import INDEX, SIZE, UNKNOWN, VERSION
from shared.game.observation.trace import RECENT, EpisodeTrace

Observation = NDArray[np.float32]

_FLOAT32: Final = np.dtype("<f4")
_SOLVED_SOUNDS: Final = frozenset({0x4D, 0x5B, 0x6C})
_HERO: Final = struct.Struct("<12f").pack_into
_TRACE: Final = struct.Struct("<5f").pack_into
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


def _span(first: str, last: str) -> slice:
    """The bytes of the features from `first` to `last`."""
    return slice(4 * INDEX[first], 4 * INDEX[last] + 4)


_UNTIL_SCREEN: Final = _span("airborne", "compass")
_SCREEN, _PUZZLE, _SOLVED = _span("control", "dying"), _span("enemies_left", "pushing"), _span("solved", "solved")
_ENEMIES, _OTHERS = _span("enemies", "second_enemy_kind"), _span("people", "nearest_danger_near")
_FREE, _EXITS = _span("free_up", "free_left"), _span("exit_up", "exit_left")
_AHEAD, _AROUND = _span("ahead_solid", "ahead_tile_low"), _span("visited_up", "visited_left")
_NEW, _ACTION = _span("unseen_up", "rooms_seen"), _span("last_wait", "last_start")
_TRACE_AT: Final = 4 * INDEX["since_tile"]
_NEVER: Final = -1


class Encoder(Protocol):
    """The interface of the observations obs/v1 and pixels/v1."""

    version: str
    shape: tuple[int, ...]

    def begin(self, state: GameState, trace: EpisodeTrace) -> NDArray[np.generic]:
        """The first observation of an episode."""
        ...

    def step(self, state: GameState, trace: EpisodeTrace) -> NDArray[np.generic]:
        """The observation after a step that `trace` has recorded."""
        ...


class VectorEncoder:
    """The encoder of obs/v1.

    `newest` is the buffer of the latest observation, float32 bytes. Fast-changing features are written every step; the
    others only when their input changes.
    """

    version = VERSION
    shape: tuple[int, ...] = (SIZE,)

    def __init__(self, capabilities: frozenset[str]) -> None:
        self._dialog, self._choice = "dialog" in capabilities, "choice" in capabilities
        self._since_solved = RECENT
        self.newest = bytearray(4 * SIZE)
        self._scene: Scene | None = None
        self._control = self._crowd = self._others = False
        self._cell = self._ahead = self._seen = self._action = _NEVER

    def begin(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The first observation of an episode: read-only float32 (128,)."""
        self._since_solved, self._scene, self._action = RECENT, None, _NEVER
        self.newest[_SOLVED] = _FLAG[None if state.sounds is None else False]
        self.newest[_ACTION] = _NO_ACTION
        return self.step(state, trace)

    def step(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The observation after a step: read-only float32 (128,)."""
        if state.scene is not self._scene:
            self._write_scene(state)
        buffer, x, y, control = self.newest, state.x, state.y, state.control
        if control is not self._control:
            self._control, buffer[_SCREEN] = control, self._screens[control]
        if state.sounds or self._since_solved < RECENT:
            self._write_solved(state.sounds)
        if (cell := (x >> 3) << 8 | (y + 3) >> 3) != self._cell:
            self._cell, buffer[_FREE] = cell, blocks.free(state.grid, x, y)
        if (ahead := state.ahead << 8 | state.tile_ahead) != self._ahead:
            self._ahead, buffer[_AHEAD] = ahead, blocks.ahead(state.ahead, state.tile_ahead)
        if (seen := trace.version << 8 | trace.place) != self._seen:
            self._seen, buffer[_NEW] = seen, blocks.frontier(state, trace)
        self._write_moves(state, trace, x, y)
        self._write_things(state, x, y)
        return np.frombuffer(bytes(buffer), _FLOAT32)

    def _write_scene(self, state: GameState) -> None:
        """Write the features of the scene."""
        buffer, grid, season = self.newest, state.grid, state.season
        self._scene = state.scene
        body = (state.airborne, state.swimming, state.holding)
        buffer[_UNTIL_SCREEN] = (
            blocks.pack(*(UNKNOWN if flag is None else flag for flag in body))
            + blocks.place(state)
            + (_NO_SEASON if season is None else _ONE_HOT[season])
            + blocks.owned(state)
        )
        self._screens = self._screen(state, False), self._screen(state, True)
        self._control, buffer[_SCREEN] = state.control, self._screens[state.control]
        buffer[_PUZZLE] = blocks.puzzle(state.puzzle)
        buffer[_EXITS], buffer[_AROUND] = blocks.exits(grid), blocks.neighbours(state.neighbours)
        self._across, self._down = _PLACE[grid.width], _PLACE[grid.height]
        self._cell = self._seen = _NEVER

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

    def _write_solved(self, sounds: tuple[int, ...] | None) -> None:
        """Write whether a puzzle was solved recently."""
        if sounds and not _SOLVED_SOUNDS.isdisjoint(sounds):
            self._since_solved = 0
        elif self._since_solved < RECENT:
            self._since_solved += 1
        self.newest[_SOLVED] = _FLAG[None if sounds is None else self._since_solved < RECENT]

    def _write_moves(self, state: GameState, trace: EpisodeTrace, x: int, y: int) -> None:
        """Write the hero's position and recent actions."""
        buffer, (moved_x, moved_y) = self.newest, trace.moved
        _HERO(
            buffer, 0, self._across[x], self._down[y], _WITHIN[x], _WITHIN[y], *_FACING[state.facing],
            _MOVED[moved_x], _MOVED[moved_y], state.invincible, state.knockback,
        )  # fmt: skip
        tile, room, streak, actions = trace.since_tile, trace.since_room, trace.streak, trace.actions
        _TRACE(
            buffer,
            _TRACE_AT,
            _SINCE_TILE[tile] if tile < 4096 else 1.0,
            _SINCE_ROOM[room] if room < 4096 else min(log1p(room) / _LOG_ROOM, 1.0),
            _RECENT[trace.moves],
            _RECENT[trace.presses],
            _RECENT[streak] if streak < RECENT else 1.0,
        )
        if actions and actions[-1] != self._action:
            self._action = actions[-1]
            buffer[_ACTION] = _LAST[self._action]

    def _write_things(self, state: GameState, x: int, y: int) -> None:
        """Write nearby objects; when the last one disappears, write their absence once."""
        enemies, people, things, dangers = state.enemies, state.talkables, state.pickups, state.dangers
        if enemies or self._crowd:
            self._crowd = bool(enemies)
            self.newest[_ENEMIES] = blocks.enemies(enemies, x, y) if enemies else _NO_ENEMY
        if people or things or dangers or self._others:
            self._others = bool(people or things or dangers)
            self.newest[_OTHERS] = (
                (blocks.people(people, x, y) if people else _NOBODY)
                + (blocks.nearest(things, x, y) if things else _NOTHING)
                + (blocks.nearest(dangers, x, y) if dangers else _NOTHING)
            )
