"""Proof that a world can be finished: a search over items, doors and flags that ends with a plan, deed by deed.

Whatever can be done is done at once, because facts only grow; only the order in which small keys are spent is searched.
It needs no machine. What it takes for granted: fights are won with the sword.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bramble.art import ACTS, Tile, load_art
from bramble.blocks import plan_pushes
from bramble.build import edge_of
from bramble.model import (
    COLUMNS,
    DIRECTIONS,
    ITEM,
    ROWS,
    SEASONS,
    SECOND_ITEM,
    SOLVED,
    STEPS,
    TREASURES,
    VISITED,
    Cell,
    Place,
    Room,
    Thing,
    World,
    WorldError,
)
from bramble.progress import ROD, SWORD, Progress, dungeon_of

CUT, LIFT, BOMB, KEY, BOSS_KEY, SHUTTER, PUSH, BUTTON, HEAVY, STUMP = (
    ACTS.index(act) for act in ("cut", "lift", "bomb", "key", "boss_key", "shutter", "push", "button", "heavy", "stump")
)
FULL, HAZARD, WATER = 0x0F, 0x10, 7
OPENS = {CUT: SWORD, LIFT: TREASURES["bracelet"]}
LOCKS = (KEY, BOSS_KEY, BOMB)

Node = tuple[Place, Cell, int]
"""Room, cell, season."""
Kind = Literal["talk", "take", "open", "press", "clear", "turn"]


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing to do: talk to (or open, read) what stands at a cell, take what lies there, unlock a door, step on all
    buttons of a room, or clear it of enemies."""

    kind: Kind
    place: Place
    cell: Cell = (0, 0)


def cells_with(room: Room, act: int) -> list[Cell]:
    """Cells of a room whose tile does something: buttons, blocks, doors."""
    tiles = load_art().by_letter
    return [(x, y) for y, row in enumerate(room.rows) for x, letter in enumerate(row) if tiles[letter].act == act]


class Prover:
    """Searches one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tiles = load_art().by_letter
        self._maps = {(place, season): room.rows_in(SEASONS[season]) for place, room in world.rooms.items()
                      for season in range(len(SEASONS))}  # fmt: skip
        self._blocked = {
            place: frozenset(t.cell for t in room.things if t.kind in ("person", "chest") and not t.only)
            for place, room in world.rooms.items()
        }
        self._tried: set[tuple[object, ...]] = set()
        self.furthest = Progress(world)

    def prove(self) -> list[Deed]:
        """Deeds that lead to every milestone; WorldError says how far one gets if there are none."""
        progress = Progress(self.world)
        plan = self._search(progress, [])
        if plan is None:
            missed = [m.name for m in self.world.milestones if m.name not in self.furthest.milestones]
            raise WorldError(f"{self.world.file}: the world cannot be finished: no way to {', '.join(missed)}")
        return plan

    def _search(self, progress: Progress, plan: list[Deed]) -> list[Deed] | None:
        before = set()  # scripts may undo what others did, so that everything comes round again
        while not progress.finished():
            before.add(progress.fingerprint())
            nodes = self.reach(progress)
            plan = plan + list(self._do_all(progress, nodes))
            if progress.fingerprint() in before:
                return self._unlock_one(progress, plan, nodes)
        self.furthest = progress
        return plan

    def _unlock_one(self, progress: Progress, plan: list[Deed], nodes: set[Node]) -> list[Deed] | None:
        """Nothing else can be done: spend a key, on each door in turn until one leads to the end."""
        if len(progress.milestones) >= len(self.furthest.milestones):
            self.furthest = progress
        if progress.fingerprint() in self._tried:
            return None
        self._tried.add(progress.fingerprint())
        for deed in self._locked(progress, nodes):
            trial = progress.copy()
            trial.keys[self._dungeon(deed.place)] -= 1
            self._open(trial, deed)
            found = self._search(trial, [*plan, deed])
            if found is not None:
                return found
        return None

    # ---- where one can go ----

    def reach(self, progress: Progress) -> set[Node]:
        """Every room, cell and season in which the hero can be now."""
        start = (self.world.start, self.world.start_cell, SEASONS.index(self.world.season))
        seen = {start}
        queue = deque([start])
        while queue:
            for node in self._next(queue.popleft(), progress):
                if node not in seen and self._free(node, progress):
                    seen.add(node)
                    queue.append(node)
        return seen

    def _next(self, node: Node, progress: Progress) -> Iterator[Node]:
        place, (column, row), season = node
        for thing in self.world.rooms[place].of_kind("warp"):
            if thing.cell == (column, row) and thing.target and progress.there(thing, place, season):
                yield thing.target, thing.arrival, season
        if self._tile(node).act == STUMP and ROD in progress.owned:
            yield from ((place, (column, row), other) for other in progress.seasons)
        for side, (dx, dy) in STEPS.items():
            x, y = column + dx, row + dy
            if 0 <= x < COLUMNS and 0 <= y < ROWS:
                yield place, (x, y), season
                yield from self._jump(place, (x, y), (x + dx, y + dy), season, progress)
            elif (over := place.neighbour(side)) in self.world.rooms and over is not None:
                yield over, (x % COLUMNS, y % ROWS), season

    def _jump(self, place: Place, hole: Cell, land: Cell, season: int, progress: Progress) -> Iterator[Node]:
        """Over one hole with the feather."""
        inside = 0 <= land[0] < COLUMNS and 0 <= land[1] < ROWS
        tile = self._tile((place, hole, season))
        if inside and tile.solid == HAZARD and tile.ground != WATER and TREASURES["feather"] in progress.owned:
            yield place, land, season

    def _tile(self, node: Node) -> Tile:
        place, (column, row), season = node
        return self.tiles[self._maps[place, season][row][column]]

    def _free(self, node: Node, progress: Progress) -> bool:
        """Whether the hero can stand there."""
        place, cell, _ = node
        if cell in self._blocked[place]:
            return False
        tile = self._tile(node)
        if tile.act in OPENS:
            return OPENS[tile.act] in progress.owned
        if tile.act in LOCKS:
            return (place, edge_of(cell)) in progress.doors
        if tile.act == SHUTTER:
            return progress.has(place, SOLVED)
        if tile.act == PUSH:
            return False
        if tile.solid == HAZARD:
            return tile.ground == WATER and TREASURES["flippers"] in progress.owned
        return tile.solid != FULL

    # ---- what one can do ----

    def _do_all(self, progress: Progress, nodes: set[Node]) -> Iterator[Deed]:
        """Do everything that can be done from there, and yield what was done."""
        cells: dict[Place, dict[Cell, int]] = {}
        for place, cell, season in sorted(nodes):
            cells.setdefault(place, {}).setdefault(cell, season)
        for place in cells:
            progress.mark(place, VISITED)
            progress.fights |= SWORD in progress.owned and bool(self.world.rooms[place].of_kind("enemy"))
        progress.note_milestones()
        for place, here in cells.items():
            room = self.world.rooms[place]
            yield from self._solve(progress, room, here)
            yield from self._things(progress, room, here)
            yield from self._free_locks(progress, room, here)

    def _solve(self, progress: Progress, room: Room, here: dict[Cell, int]) -> Iterator[Deed]:
        if room.solve == "never" or progress.has(room.place, SOLVED):
            return
        if room.solve == "cleared":
            possible = SWORD in progress.owned
        else:
            buttons = [cell for cell in cells_with(room, BUTTON)]
            possible = all(cell in here for cell in buttons)
            possible = possible and self._pushable(progress, room, here)
        if possible:
            progress.mark(room.place, SOLVED)
            progress.note_milestones()
            yield Deed("clear" if room.solve == "cleared" else "press", room.place)

    def _pushable(self, progress: Progress, room: Room, here: dict[Cell, int]) -> bool:
        """Whether blocks can be pushed onto all switches of the room."""
        switches = frozenset(cells_with(room, HEAVY))
        if not switches:
            return True
        season = next(iter(here.values()))
        blocks = frozenset(cells_with(room, PUSH))
        cells = [(x, y) for y in range(ROWS) for x in range(COLUMNS)]
        floor = blocks | {cell for cell in cells if self._free((room.place, cell, season), progress)}
        return any(plan_pushes(cell, floor, blocks, switches) is not None for cell in here)

    def _things(self, progress: Progress, room: Room, here: dict[Cell, int]) -> Iterator[Deed]:
        treasures = [thing for thing in room.things if thing.kind in ("treasure", "chest")]
        for thing in room.things:
            season = self._season_to_meet(thing, here)
            if season is None or not progress.there(thing, room.place, season):
                continue
            if thing.kind in ("treasure", "chest"):
                second = thing is not treasures[0]
                if progress.has(room.place, SECOND_ITEM if second else ITEM):
                    continue
                progress.take(thing, room.place, second, season)
                yield Deed("take" if thing.kind == "treasure" else "talk", room.place, thing.cell)
            elif thing.kind in ("person", "sign", "enter"):
                before = progress.fingerprint()
                progress.run(thing.script, room.place, season)
                if progress.fingerprint() != before and thing.kind != "enter":
                    yield Deed("talk", room.place, thing.cell)

    def _season_to_meet(self, thing: Thing, here: dict[Cell, int]) -> int | None:
        """A season in which the hero can be where the thing is met, or None."""
        if thing.kind == "enter":
            return next(iter(here.values()))
        if thing.kind == "treasure":
            return here.get(thing.cell)
        column, row = thing.cell
        beside = [(column + dx, row + dy) for dx, dy in STEPS.values()]
        return next((here[cell] for cell in beside if cell in here), None)

    # ---- locks ----

    def _locks(self, progress: Progress, room: Room, here: dict[Cell, int]) -> Iterator[tuple[Deed, int]]:
        """Closed doors that the hero can stand before."""
        for act in LOCKS:
            for column, row in cells_with(room, act):
                closed = (room.place, edge_of((column, row))) not in progress.doors
                if closed and any((column + dx, row + dy) in here for dx, dy in STEPS.values()):
                    yield Deed("open", room.place, (column, row)), act

    def _free_locks(self, progress: Progress, room: Room, here: dict[Cell, int]) -> Iterator[Deed]:
        """Doors whose opening costs nothing that another door could want."""
        for deed, act in list(self._locks(progress, room, here)):
            if act == BOMB:
                can = TREASURES["bombs"] in progress.owned
            else:
                can = act == BOSS_KEY and self._dungeon(deed.place) in progress.great_keys
            if can and (deed.place, edge_of(deed.cell)) not in progress.doors:
                self._open(progress, deed)
                yield deed

    def _locked(self, progress: Progress, nodes: set[Node]) -> list[Deed]:
        """Doors for which there is a small key."""
        cells: dict[Place, dict[Cell, int]] = {}
        for place, cell, season in sorted(nodes):
            cells.setdefault(place, {})[cell] = season
        found: dict[tuple[Place, int], Deed] = {}
        for place, here in cells.items():
            for deed, act in self._locks(progress, self.world.rooms[place], here):
                if act == KEY and progress.keys.get(self._dungeon(place), 0) > 0:
                    found.setdefault((place, edge_of(deed.cell)), deed)
        return list(found.values())

    def _dungeon(self, place: Place) -> int:
        return dungeon_of(self.world.rooms[place])

    def _open(self, progress: Progress, deed: Deed) -> None:
        """Open a door on both sides."""
        edge = edge_of(deed.cell)
        progress.doors.add((deed.place, edge))
        column, row = deed.cell
        if column in (0, COLUMNS - 1) or row in (0, ROWS - 1):
            over = deed.place.neighbour(DIRECTIONS[edge])
            if over is not None:
                progress.doors.add((over, (edge + 2) % 4))


def prove(world: World) -> list[Deed]:
    """Deeds that finish a world, in order. Raise WorldError when it cannot be finished."""
    return Prover(world).prove()


def provable_rooms(world: World) -> set[Place]:
    """Rooms that are visited on the way when everything possible is done."""
    prover = Prover(world)
    prover.prove()
    return {place for place, bits in prover.furthest.bits.items() if bits & VISITED}
