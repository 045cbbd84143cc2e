"""Finds the shortest path through a world in its current state (Dijkstra).

The map comes from the world; room flags, season and items come from RAM. The current room is read from RAM alone
(room_collisions).
"""

import heapq
from collections.abc import Iterator

from bramble.art.loader import ACTS, Tile, load_art
from bramble.emulator import BrambleEmulator
from bramble.worlds.milestones import ROOM_PAGES
from bramble.worlds.model import COLUMNS, ROWS, SEASONS, SOLVED, STEPS, TREASURES, Cell, Room, RoomId, World
from bramble.worlds.rom_builder import edge_of

Position = tuple[RoomId, Cell]
RouteNode = tuple[RoomId, Cell, int]
"""Room, cell, season. A node at the same cell turns the season; a node two cells away is a jump."""
DOORS = frozenset(ACTS.index(act) for act in ("key", "boss_key", "bomb"))
CUT, LIFT, SHUTTER, STUMP = (ACTS.index(act) for act in ("cut", "lift", "shutter", "stump"))
HAZARD = 0x10
HOLE, WATER = 1, 7
COST_CELL, COST_WORK, COST_ROOM, COST_JUMP, COST_TURN = 2, 12, 6, 20, 60
EDGE_BITS = (1, 2, 4, 8)


class Router:
    """Paths through a world for the hero with his current items."""

    def __init__(self, world: World, game: BrambleEmulator) -> None:
        self.world = world
        self.game = game
        self.tiles = load_art().by_letter
        self._room_id = world.start
        self._season = 0
        self._tiles: dict[tuple[RoomId, int], list[list[Tile]]] = {}
        self._blocked = {room_id: _blocked_cells(room) for room_id, room in world.rooms.items()}
        self._warps = {room_id: _warps_of(room) for room_id, room in world.rooms.items()}

    def season(self) -> int:
        """Number of the current season."""
        return self.game.value("season")

    def tile(self, room_id: RoomId, cell: Cell, season: int) -> Tile:
        """The tile at a cell in a season."""
        if (room_id, season) not in self._tiles:
            rows = self.world.rooms[room_id].rows_in(SEASONS[season])
            self._tiles[room_id, season] = [[self.tiles[letter] for letter in row] for row in rows]
        return self._tiles[room_id, season][cell[1]][cell[0]]

    def here(self) -> Position:
        """Room and cell under the hero's feet."""
        value = self.game.value
        cell = value("link_x") >> 4, (value("link_y") + 5) >> 4
        return RoomId(value("active_group"), value("active_room")), cell

    def owns(self, name: str) -> bool:
        """Whether the hero has a treasure."""
        number = TREASURES[name]
        return bool(self.game.value("treasure_flags", number >> 3) & 1 << (number & 7))

    def flags(self, room_id: RoomId) -> int:
        """Flags of a room."""
        return self.game.value(ROOM_PAGES[room_id.group], room_id.room)

    def door_open(self, room_id: RoomId, cell: Cell) -> bool:
        """Whether the door or cracked wall at a cell is open."""
        return bool(self.flags(room_id) & EDGE_BITS[edge_of(cell)])

    def _cost_of(self, tile: Tile, room_id: RoomId, cell: Cell) -> int | None:
        if tile.act in DOORS:
            return COST_CELL if self.door_open(room_id, cell) else None
        if tile.act == SHUTTER:
            return COST_CELL if self.flags(room_id) & SOLVED else None
        if tile.act == CUT:
            return COST_WORK if self.owns("sword") else None
        if tile.act == LIFT:
            return COST_WORK * 2 if self.owns("bracelet") else None
        if tile.solid == HAZARD:
            return COST_CELL * 2 if tile.ground == WATER and self.owns("flippers") else None
        return None if tile.solid else COST_CELL

    def cost(self, room_id: RoomId, cell: Cell, season: int) -> int | None:
        """Cost of stepping on a cell, or None if the hero cannot."""
        tile = self.tile(room_id, cell, season)
        if (room_id, season) != (self._room_id, self._season):
            return None if cell in self._blocked[room_id] else self._cost_of(tile, room_id, cell)
        solid = self.game.value("room_collisions", cell[1] * 16 + cell[0])
        if solid == 0:
            return COST_CELL
        return self._cost_of(tile, room_id, cell) if tile.act in (CUT, LIFT) or solid == HAZARD else None

    def _next(self, node: RouteNode) -> Iterator[tuple[RouteNode, int]]:
        room_id, cell, season = node
        warp = self.warp_at(room_id, cell)
        if warp is not None:
            yield (*warp, season), COST_ROOM
            return
        if self.tile(*node).act == STUMP and self.owns("rod"):
            known = self.game.value("seasons_obtained")
            yield from (((room_id, cell, other), COST_TURN) for other in range(len(SEASONS)) if known >> other & 1)
        for side, (dx, dy) in STEPS.items():
            x, y = cell[0] + dx, cell[1] + dy
            if 0 <= x < COLUMNS and 0 <= y < ROWS:
                yield (room_id, (x, y), season), 0
                if 0 <= x + dx < COLUMNS and 0 <= y + dy < ROWS and self._can_jump(room_id, (x, y), season):
                    yield (room_id, (x + dx, y + dy), season), COST_JUMP
                continue
            over = room_id.neighbour(side)
            if over in self.world.rooms and over is not None:
                yield (over, (x % COLUMNS, y % ROWS), season), COST_ROOM

    def _can_jump(self, room_id: RoomId, hole: Cell, season: int) -> bool:
        return self.tile(room_id, hole, season).ground == HOLE and self.owns("feather")

    def warp_at(self, room_id: RoomId, cell: Cell) -> Position | None:
        """Target of a warp at this cell, or None."""
        return self._warps[room_id].get(cell)

    def path(self, goal: RoomId, cell: Cell | None = None) -> list[RouteNode] | None:
        """Nodes from here (exclusive) to a cell, or to any cell, of a room; None if there is no path."""
        self._room_id, self._season = self.here()[0], self.season()
        start = (*self.here(), self._season)
        best = {start: 0}
        before: dict[RouteNode, RouteNode] = {}
        queue: list[tuple[int, RouteNode]] = [(0, start)]
        costs: dict[RouteNode, int | None] = {}
        while queue:
            spent, node = heapq.heappop(queue)
            if node[0] == goal and cell in (None, node[1]):
                return _path_to(before, start, node)
            if spent > best[node]:
                continue
            for other, extra in self._next(node):
                if other not in costs:
                    costs[other] = self.cost(*other)
                price = costs[other]
                if price is None:
                    continue
                total = spent + price + extra
                if total < best.get(other, total + 1):
                    best[other] = total
                    before[other] = node
                    heapq.heappush(queue, (total, other))
        return None


def _blocked_cells(room: Room) -> set[Cell]:
    """Cells of people and chests."""
    return {obj.cell for obj in room.objects if obj.kind in ("person", "chest")}


def _warps_of(room: Room) -> dict[Cell, Position]:
    """Each warp's cell and target; of two at one cell, the first one counts."""
    warps = [(obj.cell, (obj.target, obj.arrival)) for obj in room.of_kind("warp") if obj.target is not None]
    return dict(reversed(warps))


def _path_to(before: dict[RouteNode, RouteNode], start: RouteNode, goal: RouteNode) -> list[RouteNode]:
    out = []
    node = goal
    while node != start:
        out.append(node)
        node = before[node]
    return out[::-1]
