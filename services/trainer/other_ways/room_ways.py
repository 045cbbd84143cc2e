"""The ways between the rooms of a trajectory, and a walker that takes them."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from services.trainer.executor.executor import Executor
from services.trainer.executor.macros import MoveTo, Tile
from services.trainer.executor.navigation_grid import warp_tiles
from services.trainer.executor.outcome import STEPS, GameView
from services.trainer.options.choices import leave_room
from shared.game.decoding.state import RoomKey

MAX_WALKS: Final = 24  # of one way: one for each room, and again after each hit
MAX_STEPS: Final = 120  # of one walk; that across a room takes 40

Ways = Mapping[RoomKey, Mapping[RoomKey, Tile]]
"""For each room, the tile to walk to for each room next to it: beyond the edge where rooms scroll, else a door."""


class RoomPlace(NamedTuple):
    """Where the hero stands in a room that is so many columns and rows large, and has these doors."""

    room: RoomKey
    tile: Tile
    size: tuple[int, int]
    doors: frozenset[Tile]
    layout: bytes = b""
    """The room's tiles: a block that was moved changes them until the hero comes in again."""

    @classmethod
    def of(cls, view: GameView) -> "RoomPlace":
        """The place of a step in which the hero has control."""
        state = view.state
        size = state.grid.width // 2, state.grid.height // 2
        return cls(state.key, view.standing, size, warp_tiles(view.tiles, state.outdoors), view.tiles)


class Stop(NamedTuple):
    """A place of a trajectory, and the place where the hero came into its room."""

    place: RoomPlace
    entry: RoomPlace


def ways_of(places: Iterable[RoomPlace]) -> Ways:
    """The ways that a trajectory takes, and back. Pure."""
    ways: dict[RoomKey, dict[RoomKey, Tile]] = {}
    for here, there in pairwise(places):
        if here.room == there.room:
            continue
        side = _side_between(here, there)
        if side is None:
            out, back = _door_at(here), _door_at(there)
        else:
            out, back = _beyond(here.tile, side), _beyond(there.tile, (side + 2) % len(STEPS))
        if out is not None:
            ways.setdefault(here.room, {})[there.room] = out
        if out is not None and back is not None:
            ways.setdefault(there.room, {}).setdefault(here.room, back)
    return ways


def rooms_around(ways: Ways, here: RoomKey) -> dict[RoomKey, list[RoomKey]]:
    """The shortest way to each other room that can be reached, nearest first: the rooms on it, to its end. Pure."""
    found: dict[RoomKey, list[RoomKey]] = {here: []}
    waiting = deque([here])
    while waiting:
        room = waiting.popleft()
        for behind in ways.get(room, {}):
            if behind not in found:
                found[behind] = [*found[room], behind]
                waiting.append(behind)
    del found[here]
    return found


class RoomWalker:
    """Walks to a tile of a room, through other rooms if need be. It ends when it arrives, or knows no way on.

    Rooms that are not on the map it leaves by their exits.
    """

    def __init__(self, ways: Ways, room: RoomKey, tile: Tile) -> None:
        self._ways, self._room, self._tile = ways, room, tile
        self._to_map = ToTheMap({room: {}, **ways})
        self._walk: Executor | None = None
        self._left = MAX_WALKS
        self.arrived = False

    def next(self, view: GameView) -> int | None:
        """The next action; None at the end, see `arrived`."""
        if self._walk is None and (action := self._to_map.next(view)) is not None:
            return action
        while self._left:
            if self._walk is None:
                tile = self._target(view.state.key)
                if tile is None:
                    return None
                self._walk, self._left = Executor(MoveTo(tile), view, MAX_STEPS), self._left - 1
            action = self._walk.next(view)
            if action is not None:
                return action
            outcome, self._walk = self._walk.outcome, None
            self.arrived = outcome == "done" and view.state.key == self._room and view.standing == self._tile
            if self.arrived or outcome in ("stuck", "timeout", "unknown"):
                return None
        return None

    def _target(self, here: RoomKey) -> Tile | None:
        if here == self._room:
            return self._tile
        way = rooms_around(self._ways, here).get(self._room)
        return None if way is None else self._ways[here][way[0]]


class ToTheMap:
    """Leaves rooms that are not on the map: by their exits in turn, first doors, the nearest first, then the sides.

    It ends in a room of the map, or when no exit is left.
    """

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._exits: dict[RoomKey, Iterator[MoveTo]] = {}
        self._walk: Executor | None = None

    def next(self, view: GameView) -> int | None:
        """The next action; None at the end."""
        while self._walk is not None or view.state.key not in self._ways:
            if self._walk is None:
                here = view.state.key
                macro = next(self._exits.setdefault(here, _exits(view)), None)
                if macro is None:
                    return None
                self._walk = Executor(macro, view, MAX_STEPS)
            action = self._walk.next(view)
            if action is not None:
                return action
            self._walk = None
        return None


class ThroughTheDoor:
    """Leaves the room of a place by the first way known, and comes back to the place."""

    def __init__(self, ways: Ways, place: RoomPlace) -> None:
        self._back = RoomWalker(ways, place.room, place.tile)
        self._room, self._layout = place.room, place.layout
        outside = next(iter(ways.get(place.room, ())), None)
        self._out = None if outside is None else RoomWalker(ways, outside, place.tile)  # to no tile: he turns round
        self.arrived = False

    def next(self, view: GameView) -> int | None:
        """The next action; None at the end, see `arrived`."""
        if self._out is not None:
            if view.state.key == self._room or not view.state.control:
                return self._out.next(view)
            self._out = None
        action = self._back.next(view)
        self.arrived = self._back.arrived and view.tiles == self._layout
        return action


def way_back(
    here: RoomPlace, place: RoomPlace, entry: RoomPlace, ways: Ways, *, near: int | None = None
) -> RoomWalker | ThroughTheDoor:
    """To a place from here; where a block was moved, out of the room and in again to its entry, which puts it back.

    So also for one who has failed within `near` tiles of the place: what is wrong with the room may not be seen.
    """
    failed = near is not None and distance(here.tile, place.tile) <= near
    if here.room == place.room and (failed or here.layout != place.layout):
        return ThroughTheDoor(ways, entry)
    return RoomWalker(ways, place.room, place.tile)


def _exits(view: GameView) -> Iterator[MoveTo]:
    """The exits of a room, each to be tried once."""
    doors = warp_tiles(view.tiles, view.state.outdoors)
    yield from map(MoveTo, sorted(doors, key=lambda door: (distance(door, view.standing), door)))
    sides = (leave_room(side, view) for side in range(len(STEPS)))
    yield from (macro for macro in sides if macro is not None)


def _side_between(here: RoomPlace, there: RoomPlace) -> int | None:
    """The side on which one room scrolls to the other; None if they do not."""
    if here.room[0] != there.room[0] or here.tile in here.doors:
        return None
    for side, (dx, dy) in enumerate(STEPS):
        leaves = _at_edge(here.tile, here.size, (dx, dy))
        if leaves and _at_edge(there.tile, there.size, (-dx, -dy)):
            return side
    return None


def _door_at(place: RoomPlace) -> Tile | None:
    """The door beside which the hero stands, or in it."""
    door = min(place.doors, key=lambda one: distance(one, place.tile), default=None)
    return None if door is None or distance(door, place.tile) > 1 else door


def _at_edge(tile: Tile, size: tuple[int, int], direction: tuple[int, int]) -> bool:
    axis = 0 if direction[0] else 1
    return tile[axis] == (0 if direction[axis] < 0 else size[axis] - 1)


def _beyond(tile: Tile, side: int) -> Tile:
    return tile[0] + STEPS[side][0], tile[1] + STEPS[side][1]


def distance(one: Tile, other: Tile) -> int:
    """Tiles between two tiles, along both axes."""
    return abs(one[0] - other[0]) + abs(one[1] - other[1])
