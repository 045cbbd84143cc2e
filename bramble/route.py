"""Where to walk: the shortest way through a world as it is now.

The map comes from the world, what is open from RAM: room flags, season and items. The room one stands in is read from
RAM alone (room_collisions).
"""

import heapq
from collections.abc import Iterator

from bramble.art import ACTS, Tile, load_art
from bramble.build import edge_of
from bramble.game import Game
from bramble.milestones import ROOM_PAGES
from bramble.model import COLUMNS, ROWS, SEASONS, SOLVED, TREASURES, Cell, Place, World

Node = tuple[Place, Cell]
STEPS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
DOORS = frozenset(ACTS.index(act) for act in ("key", "boss_key", "bomb"))
CUT, LIFT, SHUTTER = (ACTS.index(act) for act in ("cut", "lift", "shutter"))
HAZARD = 0x10
WATER = 7
COST_CELL, COST_WORK, COST_ROOM = 2, 12, 6
EDGE_BITS = (1, 2, 4, 8)


class Router:
    """Ways through a world for the hero as he is now."""

    def __init__(self, world: World, game: Game) -> None:
        self.world = world
        self.game = game
        self.tiles = load_art().by_letter
        self._place = world.start
        self._maps: dict[Place, list[str]] = {}

    def rows_now(self, place: Place) -> list[str]:
        """The map of a room in the season that it is."""
        if place not in self._maps:
            self._maps[place] = self.world.rooms[place].rows_in(SEASONS[self.game.value("season")])
        return self._maps[place]

    def here(self) -> Node:
        """Where the hero stands: the cell under his feet."""
        value = self.game.value
        cell = value("link_x") >> 4, (value("link_y") + 5) >> 4
        return Place(value("active_group"), value("active_room")), cell

    def owns(self, name: str) -> bool:
        """Whether the hero has a treasure."""
        number = TREASURES[name]
        return bool(self.game.value("treasure_flags", number >> 3) & 1 << (number & 7))

    def flags(self, place: Place) -> int:
        """Flags of a room."""
        return self.game.value(ROOM_PAGES[place.group], place.room)

    def _door_open(self, place: Place, cell: Cell) -> bool:
        return bool(self.flags(place) & EDGE_BITS[edge_of(cell)])

    def _cost_of(self, tile: Tile, place: Place, cell: Cell) -> int | None:
        if tile.act in DOORS:
            return COST_CELL if self._door_open(place, cell) else None
        if tile.act == SHUTTER:
            return COST_CELL if self.flags(place) & SOLVED else None
        if tile.act == CUT:
            return COST_WORK if self.owns("sword") else None
        if tile.act == LIFT:
            return COST_WORK * 2 if self.owns("bracelet") else None
        if tile.solid == HAZARD:
            return COST_CELL * 2 if tile.ground == WATER and self.owns("flippers") else None
        return None if tile.solid else COST_CELL

    def blocked_cells(self, place: Place) -> set[Cell]:
        """Cells where somebody stands or a chest may be."""
        room = self.world.rooms[place]
        return {thing.cell for thing in room.things if thing.kind in ("person", "chest")}

    def cost(self, place: Place, cell: Cell) -> int | None:
        """Cost of stepping on a cell, None when it cannot be."""
        column, row = cell
        tile = self.tiles[self.rows_now(place)[row][column]]
        if place != self._place:
            return None if cell in self.blocked_cells(place) else self._cost_of(tile, place, cell)
        solid = self.game.value("room_collisions", row * 16 + column)
        if solid == 0:
            return COST_CELL
        return self._cost_of(tile, place, cell) if tile.act in (CUT, LIFT) or solid == HAZARD else None

    def _next(self, node: Node) -> Iterator[tuple[Node, int]]:
        place, cell = node
        warp = self.warp_at(place, cell)
        if warp is not None:
            yield warp, COST_ROOM
            return
        for dx, dy in STEPS.values():
            x, y = cell[0] + dx, cell[1] + dy
            if 0 <= x < COLUMNS and 0 <= y < ROWS:
                yield (place, (x, y)), 0
                continue
            side = next(name for name, step in STEPS.items() if step == (dx, dy))
            over = place.neighbour(side)
            if over in self.world.rooms and over is not None:
                yield (over, (x % COLUMNS, y % ROWS)), COST_ROOM

    def warp_at(self, place: Place, cell: Cell) -> Node | None:
        """Where a warp at this cell leads."""
        for thing in self.world.rooms[place].of_kind("warp"):
            if thing.cell == cell and thing.target is not None:
                return thing.target, thing.arrival
        return None

    def way(self, goal: Place, cell: Cell | None = None) -> list[Node] | None:
        """Nodes from here to a cell (or any cell) of a room, this one left out; None when there is no way."""
        start = self.here()
        self._place = start[0]
        self._maps.clear()
        best = {start: 0}
        before: dict[Node, Node] = {}
        queue: list[tuple[int, Node]] = [(0, start)]
        costs: dict[Node, int | None] = {}
        while queue:
            spent, node = heapq.heappop(queue)
            if node[0] == goal and cell in (None, node[1]):
                return _trace(before, start, node)
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


def _trace(before: dict[Node, Node], start: Node, goal: Node) -> list[Node]:
    out = []
    node = goal
    while node != start:
        out.append(node)
        node = before[node]
    return out[::-1]
