"""The blocks of obs/v1 that are computed from a state, each as little-endian float32 bytes in the order of layout.py.

Pure functions; the encoder decides when to recompute them.
"""

import struct
from functools import lru_cache
from math import log1p
from typing import Final

from shared.game.decoding.grid import HAZARD, Grid
from shared.game.decoding.names import PUSH_REST
from shared.game.decoding.objects import GameObject
from shared.game.decoding.state import GameState, Inventory, Neighbours, Puzzle
from shared.game.observation.layout import UNKNOWN
from shared.game.observation.trace import EpisodeTrace

_LOG_MONEY, _LOG_ROOMS = log1p(999), log1p(255)
_BRACELET, _FLIPPERS, _ROD = 0x16, 0x2E, 0x07
_AREAS: Final = 6
_ENEMIES: Final = struct.Struct("<11f").pack
_FIVE: Final = struct.Struct("<5f").pack
_THREE: Final = struct.Struct("<3f").pack
_FOUR: Final = struct.Struct("<4f").pack
_SIX: Final = struct.Struct("<6f").pack
_BY20: Final = tuple(min(cells / 20, 1.0) for cells in range(64))
_NEAR: Final = (0.0, *(1 / distance for distance in range(1, 32)))
_NO_SECOND: Final = (0.0,) * 5


def pack(*values: float) -> bytes:
    """Values as float32 bytes."""
    return struct.pack(f"<{len(values)}f", *values)


def clip(value: float) -> float:
    """`value` within [-1, 1]."""
    return -1.0 if value < -1.0 else 1.0 if value > 1.0 else value


def share(count: int | None, whole: int) -> float:
    """A count as a share of `whole`, at most 1; unknown stays unknown."""
    return UNKNOWN if count is None else min(count / whole, 1.0)


def differences(whole: int) -> tuple[float, ...]:
    """Index -255 to 255 (below zero counts from the end, as Python does) -> that many pixels by `whole`, clipped."""
    return tuple(clip(pixels / whole) for pixels in (*range(256), *range(-255, 0)))


_BY80, _BY64 = differences(80), differences(64)
_NEARNESS: Final = tuple(1 - far / 160 if far < 160 else 0.0 for far in range(256))
_LITTLE_HEALTH: Final = tuple(min(health / 8, 1.0) for health in range(256))
_KIND: Final = tuple(min(kind / 128, 1.0) for kind in range(256))
_CROWD: Final = tuple(min(count / 8, 1.0) for count in range(17))


def place(state: GameState) -> bytes:
    """Area, room number, place on the map, dungeon."""
    room, position, group = state.room, state.dungeon_position, state.group
    area = group if group < 4 else 4 if group < 6 else 5
    row, column, size = (room >> 4, room & 15, 15) if position is None else (position >> 3, position & 7, 7)
    number = 0.0 if state.dungeon is None else min((state.dungeon + 1) / 12, 1.0)
    return pack(
        *(float(place == area) for place in range(_AREAS)),
        *(1.0 if room >> bit & 1 else -1.0 for bit in range(8)),
        row / size * 2 - 1,
        column / size * 2 - 1,
        *((UNKNOWN, UNKNOWN) if state.in_dungeon is None else (float(state.in_dungeon), number)),
    )


def owned(state: GameState) -> bytes:
    """Health, items, keys."""
    return pack(*_health(state.inventory), *_items(state.inventory), *_keys(state))


def _health(own: Inventory) -> tuple[float, ...]:
    return (
        min(own.health / own.max_health, 1.0) if own.max_health else 0.0,
        min(own.max_health / 64, 1.0),
        float(own.health <= 4),
    )


def _items(own: Inventory) -> tuple[float, ...]:
    treasures = own.treasures
    has = [UNKNOWN if treasures is None else float(number in treasures) for number in (_BRACELET, _FLIPPERS, _ROD)]
    return (
        UNKNOWN if own.rupees is None else min(log1p(own.rupees) / _LOG_MONEY, 1.0),
        share(own.heart_pieces, 4),
        share(own.sword, 3),
        share(own.shield, 3),
        share(own.bombs, 30),
        share(own.feather, 2),
        *has,
        share(own.seeds, 99),
        share(None if own.essences is None else own.essences.bit_count(), 8),
        share(None if treasures is None else len(treasures), 32),
    )


def _keys(state: GameState) -> tuple[float, ...]:
    own, dungeon = state.inventory, state.dungeon
    small = UNKNOWN if own.small_keys is None else min((state.keys or 0) / 4, 1.0)
    others = (
        UNKNOWN if bits is None else float(dungeon is not None and bool(bits >> dungeon & 1))
        for bits in (own.boss_keys, own.maps, own.compasses)
    )
    return (small, *others)


def puzzle(puzzle: Puzzle) -> bytes:
    """The movable parts of the room, except `solved`."""
    levers = None if puzzle.toggles is None else puzzle.toggles.bit_count() + (puzzle.switches or 0).bit_count()
    return pack(
        min(puzzle.enemies_left / 8, 1.0),
        share(None if puzzle.triggers is None else puzzle.triggers.bit_count(), 4),
        share(levers, 8),
        share(puzzle.torches, 8),
        share(puzzle.shutters_open, 4),
        UNKNOWN if puzzle.push is None else 1 - min(puzzle.push, PUSH_REST) / PUSH_REST,
    )


def _offset(thing: GameObject, x: int, y: int) -> tuple[float, float, float]:
    """Right and down as shares of half a screen, and nearness."""
    right, down = thing.x - x, thing.y - y
    return _BY80[right], _BY64[down], _NEARNESS[max(right, -right, down, -down)]


def _closest_two(things: tuple[GameObject, ...], x: int, y: int) -> tuple[GameObject, GameObject | None]:
    """The nearest object and the second nearest or None; among equals, the earlier slot."""
    first = things[0]
    if len(things) == 1:
        return first, None
    second = None
    far = farther = 1 << 16
    for thing in things:
        across, along = thing.x, thing.y
        across = across - x if across > x else x - across
        along = along - y if along > y else y - along
        distance = across if across > along else along
        if distance < far:
            first, second, far, farther = thing, first, distance, far
        elif distance < farther:
            second, farther = thing, distance
    return first, second


def _fighter(thing: GameObject, x: int, y: int) -> tuple[float, ...]:
    right, down = thing.x - x, thing.y - y
    return (
        _BY80[right],
        _BY64[down],
        _NEARNESS[max(right, -right, down, -down)],
        _LITTLE_HEALTH[thing.health],
        _KIND[thing.id],
    )


def enemies(things: tuple[GameObject, ...], x: int, y: int) -> bytes:
    """The number of enemies and the nearest two. `things` is not empty."""
    first, second = _closest_two(things, x, y)
    return _ENEMIES(
        _CROWD[len(things)], *_fighter(first, x, y), *(_NO_SECOND if second is None else _fighter(second, x, y))
    )


def people(things: tuple[GameObject, ...], x: int, y: int) -> bytes:
    """The number of people and the nearest one. `things` is not empty."""
    first, _ = _closest_two(things, x, y)
    return _FIVE(min(len(things) / 4, 1.0), *_offset(first, x, y), min(first.id / 128, 1.0))


def nearest(things: tuple[GameObject, ...], x: int, y: int) -> bytes:
    """The position of the nearest object. `things` is not empty."""
    return _THREE(*_offset(_closest_two(things, x, y)[0], x, y))


@lru_cache(maxsize=4096)
def ahead(collision: int, tile: int) -> bytes:
    """The tile ahead: solidity, hazard, and its number in two halves."""
    solid = collision.bit_count() / 4 if collision < HAZARD else float(collision in (0x1E, 0xFE))
    return pack(solid, float(collision == HAZARD), (tile >> 4) / 15, (tile & 15) / 15)


def neighbours(flags: Neighbours) -> bytes:
    """The neighbouring rooms: visited, not visited, or absent."""
    return pack(*(-1.0 if flag is None else float(flag >> 4 & 1) for flag in flags))


def exits(grid: Grid) -> bytes:
    """The position of the opening in each side."""
    sides = (grid.width, grid.height, grid.width, grid.height)
    return pack(*(-1.0 if way is None else way / side for way, side in zip(grid.exits, sides, strict=True)))


def free(grid: Grid, x: int, y: int) -> bytes:
    """Free cells up, right, down and left."""
    up, right, down, left = grid.rays(x, y)
    return _FOUR(_BY20[up], _BY20[right], _BY20[down], _BY20[left])


def frontier(state: GameState, trace: EpisodeTrace) -> bytes:
    """Unseen tiles nearby, and the seen share of the room and the world."""
    up, right, down, left = trace.unseen(state)
    rooms = min(log1p(len(trace.rooms)) / _LOG_ROOMS, 1.0)
    return _SIX(_NEAR[up], _NEAR[right], _NEAR[down], _NEAR[left], trace.coverage(), rooms)
