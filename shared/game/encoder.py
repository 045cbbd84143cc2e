"""Turns states into observations obs/v1: 128 float32 in [-1, 1], in the order of layout.py.

One encoder per environment: it remembers the parts that seldom change, and when something was last solved. The same
states and actions give the same observations, so a replay can rebuild them.
"""

import struct
from math import log1p
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from shared.game import layout
from shared.game.grid import HAZARD, STRIDE
from shared.game.layout import UNKNOWN
from shared.game.names import ACTIONS
from shared.game.objects import Thing
from shared.game.rows import PUSH_REST
from shared.game.state import GameState, Inventory, Puzzle
from shared.game.trace import RECENT, EpisodeTrace

Observation = NDArray[np.float32]
Block = tuple[float, ...]

_PACK: Final = struct.Struct(f"<{layout.SIZE}f").pack
_ONE_HOT4: Final = tuple(tuple(float(place == one) for place in range(4)) for one in range(4))
_LAST: Final = tuple(tuple(float(place == one) for place in range(len(ACTIONS))) for one in range(len(ACTIONS)))
_NO_ACTION: Final = (0.0,) * len(ACTIONS)
_SOLVED: Final = frozenset({0x4D, 0x5B, 0x6C})
_AREA: Final = tuple(tuple(float(min(group, 6) // 2 + 2 == area if group >= 4 else group == area) for area in range(6))
                     for group in range(8))  # fmt: skip
_QUARTERS_SOLID: Final = tuple(
    (value.bit_count() / 4 if value < HAZARD else 1.0 if value in (0x1E, 0xFE) else 0.0) for value in range(256)
)
_LOG: Final = tuple(log1p(count) for count in range(4096))
_LOG_ROOMS: Final = log1p(255)
_LOG_STEPS: Final = log1p(65535)
_NOTHING: Final = (0.0,) * 10
_BRACELET, _FLIPPERS, _ROD = 0x16, 0x2E, 0x07
_AHEAD: Final = ((0, -9), (10, 3), (0, 13), (-11, 3))


class Encoder(Protocol):
    """The port behind which obs/v1 and pixels/v1 stand."""

    version: str
    shape: tuple[int, ...]

    def begin(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The first observation of an episode."""
        ...

    def step(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The observation after a step that `trace` has noted."""
        ...


class VectorEncoder:
    """The encoder of obs/v1."""

    version = layout.VERSION
    shape: tuple[int, ...] = (layout.SIZE,)

    def __init__(self, capabilities: frozenset[str]) -> None:
        self._has = capabilities
        self._since_solved = RECENT
        self._room: tuple[tuple[int, int, int | None], Block] | None = None
        self._items: tuple[Inventory, int | None, Block, Block, Block] | None = None
        self._walls: tuple[tuple[object, ...], Block] | None = None
        self._riddle: tuple[Puzzle, Block] | None = None
        self._new: tuple[tuple[object, ...], Block] | None = None

    def begin(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The first observation of an episode: read-only float32 (128,)."""
        self._since_solved = RECENT
        return self.step(state, trace)

    def step(self, state: GameState, trace: EpisodeTrace) -> Observation:
        """The observation after a step: read-only float32 (128,)."""
        health, items, keys = self._owned(state)
        return np.frombuffer(
            _PACK(
                *self._hero(state, trace),
                *(
                    UNKNOWN if state.airborne is None else float(state.airborne),
                    UNKNOWN if state.swimming is None else float(state.swimming),
                    UNKNOWN if state.holding is None else float(state.holding),
                ),
                *self._place(state),
                *((UNKNOWN,) * 4 if state.season is None else _ONE_HOT4[state.season]),
                *health,
                *items,
                *keys,
                *self._screen(state),
                *self._puzzle(state),
                *_enemies(state),
                *_people(state),
                *(_nearest(state.pickups, state, 1)[:3] if state.pickups else _NOTHING[:3]),
                *(_nearest(state.dangers, state, 1)[:3] if state.dangers else _NOTHING[:3]),
                *self._surroundings(state),
                *self._frontier(state, trace),
                *_trace(trace),
            ),
            np.float32,
        )

    def _hero(self, state: GameState, trace: EpisodeTrace) -> Block:
        grid = state.grid
        x, y = state.x, state.y
        moved_x, moved_y = trace.moved
        return (
            _clip(x / (grid.width * 4) - 1),
            _clip(y / (grid.height * 4) - 1),
            (x & 15) / 7.5 - 1,
            (y & 15) / 7.5 - 1,
            *_ONE_HOT4[state.facing],
            _clip(moved_x / 8),
            _clip(moved_y / 8),
            float(state.invincible),
            float(state.knockback),
        )

    def _place(self, state: GameState) -> Block:
        key = (state.group, state.room, state.dungeon_position)
        if self._room is None or self._room[0] != key:
            self._room = key, _place(state)
        return self._room[1]

    def _owned(self, state: GameState) -> tuple[Block, Block, Block]:
        """Blocks that depend on the inventory; made anew only when it is another one."""
        known, own = self._items, state.inventory
        if known is None or known[0] is not own or known[1] != state.dungeon:
            known = self._items = own, state.dungeon, _health(own), self._items_of(own), self._keys_of(state)
        return known[2:]

    def _items_of(self, own: Inventory) -> Block:
        treasures = own.treasures

        def owned(number: int) -> float:
            return UNKNOWN if treasures is None else float(number in treasures)

        return (
            UNKNOWN if own.rupees is None else log1p(own.rupees) / log1p(999),
            _share(own.heart_pieces, 4),
            _share(own.sword, 3),
            _share(own.shield, 3),
            _share(own.bombs, 30),
            _share(own.feather, 2),
            owned(_BRACELET),
            owned(_FLIPPERS),
            owned(_ROD),
            _share(own.seeds, 99),
            UNKNOWN if own.essences is None else own.essences.bit_count() / 8,
            UNKNOWN if treasures is None else min(len(treasures) / 32, 1.0),
        )

    def _keys_of(self, state: GameState) -> Block:
        own, dungeon = state.inventory, state.dungeon

        def owned(bits: int | None) -> float:
            if bits is None:
                return UNKNOWN
            return float(dungeon is not None and bool(bits >> dungeon & 1))

        keys = UNKNOWN if own.small_keys is None else min((state.keys or 0) / 4, 1.0)
        return keys, owned(own.boss_keys), owned(own.maps), owned(own.compasses)

    def _screen(self, state: GameState) -> Block:
        dialog = state.dialog
        text = (float(dialog is not None), float(dialog is not None and dialog.waiting))
        return (
            float(state.control),
            *(text if "dialog" in self._has else (UNKNOWN, UNKNOWN)),
            float(dialog is not None and dialog.choosing) if "choice" in self._has else UNKNOWN,
            UNKNOWN if state.menu is None else float(state.menu != 0),
            float(state.transition),
            float(state.cutscene),
            float(state.dying),
        )

    def _puzzle(self, state: GameState) -> Block:
        puzzle, sounds = state.puzzle, state.sounds
        if sounds and not _SOLVED.isdisjoint(sounds):
            self._since_solved = 0
        elif self._since_solved < RECENT:
            self._since_solved += 1
        if self._riddle is None or self._riddle[0] is not puzzle:
            self._riddle = puzzle, _puzzle(puzzle)
        return (*self._riddle[1], UNKNOWN if sounds is None else 1.0 if self._since_solved < RECENT else 0.0)

    def _surroundings(self, state: GameState) -> Block:
        """Walls, exits, the tile ahead, the rooms around: remembered while the hero stays in his cell."""
        grid = state.grid
        key = (grid, grid.cell(state.x, state.y), state.facing, state.tile_ahead, state.neighbours)
        if self._walls is None or self._walls[0] != key:
            self._walls = key, _walls(state)
        return self._walls[1]

    def _frontier(self, state: GameState, trace: EpisodeTrace) -> Block:
        key = (trace.place, trace.version, state.key)
        if self._new is None or self._new[0] != key:
            rooms = min(log1p(len(trace.rooms)) / _LOG_ROOMS, 1.0)
            unseen = (1 / distance if distance else 0.0 for distance in trace.unseen(state))
            self._new = key, (*unseen, trace.coverage(state), rooms)
        tile, room = trace.since_tile, trace.since_room
        return (
            *self._new[1],
            _LOG[tile] / _LOG[4095] if tile < 4096 else 1.0,
            min(log1p(room) / _LOG_STEPS, 1.0),
        )


def _clip(value: float) -> float:
    return -1.0 if value < -1.0 else 1.0 if value > 1.0 else value


def _share(count: int | None, whole: int) -> float:
    return UNKNOWN if count is None else min(count / whole, 1.0)


def _place(state: GameState) -> Block:
    room, position = state.room, state.dungeon_position
    row, column, size = (room >> 4, room & 15, 15) if position is None else (position >> 3, position & 7, 7)
    return (
        *_AREA[state.group],
        *(1.0 if room >> bit & 1 else -1.0 for bit in range(8)),
        row / size * 2 - 1,
        column / size * 2 - 1,
        UNKNOWN if state.in_dungeon is None else float(state.in_dungeon),
        UNKNOWN
        if state.in_dungeon is None
        else min((state.dungeon + 1) / 12, 1.0)
        if state.dungeon is not None
        else 0.0,
    )


def _health(own: Inventory) -> Block:
    return (
        min(own.health / own.max_health, 1.0) if own.max_health else 0.0,
        min(own.max_health / 64, 1.0),
        float(own.health <= 4),
    )


def _distance(thing: Thing, x: int, y: int) -> int:
    return max(abs(thing.x - x), abs(thing.y - y))


def _nearest(things: tuple[Thing, ...], state: GameState, count: int) -> Block:
    """For the `count` nearest: offset right and down, nearness, health, kind. Zeros where there is none."""
    x, y = state.x, state.y
    if len(things) > 1:
        things = tuple(sorted(things, key=lambda thing: _distance(thing, x, y)))
    values: list[float] = []
    for thing in things[:count]:
        right, down = thing.x - x, thing.y - y
        values += (
            _clip(right / 80),
            _clip(down / 64),
            max(1 - _distance(thing, x, y) / 160, 0.0),
            min(thing.health / 8, 1.0),
            min(thing.id / 128, 1.0),
        )
    return (*values, *(0.0,) * (5 * count - len(values)))


def _enemies(state: GameState) -> Block:
    things = state.enemies
    return (min(len(things) / 8, 1.0), *(_nearest(things, state, 2) if things else _NOTHING))


def _people(state: GameState) -> Block:
    things = state.talkables
    if not things:
        return _NOTHING[:5]
    right, down, near, _health, kind = _nearest(things, state, 1)
    return min(len(things) / 4, 1.0), right, down, near, kind


def _puzzle(puzzle: Puzzle) -> Block:
    levers = None if puzzle.toggles is None else puzzle.toggles.bit_count() + (puzzle.switches or 0).bit_count()
    return (
        min(puzzle.enemies_left / 8, 1.0),
        UNKNOWN if puzzle.triggers is None else min(puzzle.triggers.bit_count() / 4, 1.0),
        _share(levers, 8),
        _share(puzzle.torches, 8),
        _share(puzzle.shutters_open, 4),
        UNKNOWN if puzzle.push is None else 1 - min(puzzle.push, PUSH_REST) / PUSH_REST,
    )


def _walls(state: GameState) -> Block:
    grid = state.grid
    right, down = _AHEAD[state.facing]
    place = (min(max(state.y + down, 0), 175) >> 4) * STRIDE + (min(max(state.x + right, 0), 255) >> 4)
    ahead = grid.source[place]
    along = (grid.width, grid.height, grid.width, grid.height)
    return (
        *(min(cells / 20, 1.0) for cells in grid.rays(state.x, state.y)),
        *(-1.0 if way is None else way / length for way, length in zip(grid.exits, along, strict=True)),
        _QUARTERS_SOLID[ahead],
        float(ahead == HAZARD),
        (state.tile_ahead >> 4) / 15,
        (state.tile_ahead & 15) / 15,
        *(-1.0 if flags is None else float(flags >> 4 & 1) for flags in state.neighbours),
    )


def _trace(trace: EpisodeTrace) -> Block:
    actions = trace.actions
    if not actions:
        return (*_NO_ACTION, 0.0, 0.0, 0.0)
    return (*_LAST[actions[-1]], trace.moves / RECENT, trace.presses / RECENT, min(trace.streak / RECENT, 1.0))
