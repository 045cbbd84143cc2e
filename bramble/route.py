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
from bramble.model import COLUMNS, ROWS, SEASONS, SOLVED, STEPS, TREASURES, Cell, Place, World

Node = tuple[Place, Cell]
Hop = tuple[Place, Cell, int]
"""Room, cell, season. A hop to the same cell turns the season, one to the second cell is a jump."""
DOORS = frozenset(ACTS.index(act) for act in ("key", "boss_key", "bomb"))
CUT, LIFT, SHUTTER, STUMP = (ACTS.index(act) for act in ("cut", "lift", "shutter", "stump"))
HAZARD = 0x10
HOLE, WATER = 1, 7
COST_CELL, COST_WORK, COST_ROOM, COST_JUMP, COST_TURN = 2, 12, 6, 20, 60
EDGE_BITS = (1, 2, 4, 8)


class Router:
    """Ways through a world for the hero as he is now."""

    def __init__(self, world: World, game: Game) -> None:
        self.world = world
        self.game = game
        self.tiles = load_art().by_letter
        self._place = world.start
        self._season = 0
        self._tiles: dict[tuple[Place, int], list[list[Tile]]] = {}

    def season(self) -> int:
        """Number of the season that it is."""
        return self.game.value("season")

    def tile(self, place: Place, cell: Cell, season: int) -> Tile:
        """What the world has at a cell in a season."""
        if (place, season) not in self._tiles:
            rows = self.world.rooms[place].rows_in(SEASONS[season])
            self._tiles[place, season] = [[self.tiles[letter] for letter in row] for row in rows]
        return self._tiles[place, season][cell[1]][cell[0]]

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

    def door_open(self, place: Place, cell: Cell) -> bool:
        """Whether the door or cracked wall at a cell was opened."""
        return bool(self.flags(place) & EDGE_BITS[edge_of(cell)])

    def _cost_of(self, tile: Tile, place: Place, cell: Cell) -> int | None:
        if tile.act in DOORS:
            return COST_CELL if self.door_open(place, cell) else None
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

    def cost(self, place: Place, cell: Cell, season: int) -> int | None:
        """Cost of stepping on a cell, None when it cannot be."""
        tile = self.tile(place, cell, season)
        if (place, season) != (self._place, self._season):
            return None if cell in self.blocked_cells(place) else self._cost_of(tile, place, cell)
        solid = self.game.value("room_collisions", cell[1] * 16 + cell[0])
        if solid == 0:
            return COST_CELL
        return self._cost_of(tile, place, cell) if tile.act in (CUT, LIFT) or solid == HAZARD else None

    def _next(self, hop: Hop) -> Iterator[tuple[Hop, int]]:
        place, cell, season = hop
        warp = self.warp_at(place, cell)
        if warp is not None:
            yield (*warp, season), COST_ROOM
            return
        if self.tile(*hop).act == STUMP and self.owns("rod"):
            known = self.game.value("seasons_obtained")
            yield from (((place, cell, other), COST_TURN) for other in range(len(SEASONS)) if known >> other & 1)
        for side, (dx, dy) in STEPS.items():
            x, y = cell[0] + dx, cell[1] + dy
            if 0 <= x < COLUMNS and 0 <= y < ROWS:
                yield (place, (x, y), season), 0
                if 0 <= x + dx < COLUMNS and 0 <= y + dy < ROWS and self._can_jump(place, (x, y), season):
                    yield (place, (x + dx, y + dy), season), COST_JUMP
                continue
            over = place.neighbour(side)
            if over in self.world.rooms and over is not None:
                yield (over, (x % COLUMNS, y % ROWS), season), COST_ROOM

    def _can_jump(self, place: Place, hole: Cell, season: int) -> bool:
        return self.tile(place, hole, season).ground == HOLE and self.owns("feather")

    def warp_at(self, place: Place, cell: Cell) -> Node | None:
        """Where a warp at this cell leads."""
        for thing in self.world.rooms[place].of_kind("warp"):
            if thing.cell == cell and thing.target is not None:
                return thing.target, thing.arrival
        return None

    def way(self, goal: Place, cell: Cell | None = None) -> list[Hop] | None:
        """Hops from here to a cell (or any cell) of a room, this one left out; None when there is no way."""
        self._place, self._season = self.here()[0], self.season()
        start = (*self.here(), self._season)
        best = {start: 0}
        before: dict[Hop, Hop] = {}
        queue: list[tuple[int, Hop]] = [(0, start)]
        costs: dict[Hop, int | None] = {}
        while queue:
            spent, hop = heapq.heappop(queue)
            if hop[0] == goal and cell in (None, hop[1]):
                return _trace(before, start, hop)
            if spent > best[hop]:
                continue
            for other, extra in self._next(hop):
                if other not in costs:
                    costs[other] = self.cost(*other)
                price = costs[other]
                if price is None:
                    continue
                total = spent + price + extra
                if total < best.get(other, total + 1):
                    best[other] = total
                    before[other] = hop
                    heapq.heappush(queue, (total, other))
        return None


def _trace(before: dict[Hop, Hop], start: Hop, goal: Hop) -> list[Hop]:
    out = []
    hop = goal
    while hop != start:
        out.append(hop)
        hop = before[hop]
    return out[::-1]
