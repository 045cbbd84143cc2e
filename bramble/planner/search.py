"""Finds a plan that finishes a world: a search over items, doors and flags, without an emulator.

Facts only grow, so the search takes every possible step immediately; only the order of spending small keys branches.
It assumes that the hero wins every fight with the sword.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bramble.art.loader import ACTS, Tile, load_art
from bramble.planner.block_puzzle import plan_pushes
from bramble.planner.world_state import ROD, SWORD, WorldState, dungeon_of
from bramble.worlds.model import (
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
    Room,
    RoomId,
    RoomObject,
    World,
    WorldError,
)
from bramble.worlds.rom_builder import edge_of

CUT, LIFT, BOMB, KEY, BOSS_KEY, SHUTTER, PUSH, BUTTON, HEAVY, STUMP = (
    ACTS.index(act) for act in ("cut", "lift", "bomb", "key", "boss_key", "shutter", "push", "button", "heavy", "stump")
)
FULL, HAZARD, WATER = 0x0F, 0x10, 7
OPENS = {CUT: SWORD, LIFT: TREASURES["bracelet"]}
LOCKS = (KEY, BOSS_KEY, BOMB)

RouteNode = tuple[RoomId, Cell, int]
"""Room, cell, season."""
Kind = Literal["talk", "take", "open", "press", "clear"]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan.

    talk (to a person, sign or chest at a cell), take (a treasure), open (a door), press (all buttons of a room), clear
    (a room of enemies).
    """

    kind: Kind
    room_id: RoomId
    cell: Cell = (0, 0)


def cells_with(room: Room, act: int) -> list[Cell]:
    """Cells of a room whose tile has an act: buttons, blocks, doors."""
    tiles = load_art().by_letter
    return [(x, y) for y, row in enumerate(room.rows) for x, letter in enumerate(row) if tiles[letter].act == act]


class WorldPlanner:
    """Searches one world for a plan."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tiles = load_art().by_letter
        self._maps = {(room_id, season): room.rows_in(SEASONS[season]) for room_id, room in world.rooms.items()
                      for season in range(len(SEASONS))}  # fmt: skip
        self._blocked = {
            room_id: frozenset(t.cell for t in room.objects if t.kind in ("person", "chest") and not t.only)
            for room_id, room in world.rooms.items()
        }
        self._tried: set[tuple[object, ...]] = set()
        self.furthest = WorldState(world)

    def find_plan(self) -> list[PlanStep]:
        """Steps to every milestone. Raise WorldError with the unreachable milestones."""
        state = WorldState(self.world)
        plan = self._search(state, [])
        if plan is None:
            missed = [m.name for m in self.world.milestones if m.name not in self.furthest.milestones]
            raise WorldError(f"{self.world.file}: the world cannot be finished: no way to {', '.join(missed)}")
        return plan

    def _search(self, state: WorldState, plan: list[PlanStep]) -> list[PlanStep] | None:
        before = set()  # scripts may undo the effects of others: stop at a repeated state
        while not state.finished():
            before.add(state.fingerprint())
            nodes = self.reachable_nodes(state)
            plan = plan + list(self._take_all_steps(state, nodes))
            if state.fingerprint() in before:
                return self._unlock_one(state, plan, nodes)
        self.furthest = state
        return plan

    def _unlock_one(self, state: WorldState, plan: list[PlanStep], nodes: set[RouteNode]) -> list[PlanStep] | None:
        """Only locked doors are left: try a key on each door until one leads to the end."""
        if len(state.milestones) >= len(self.furthest.milestones):
            self.furthest = state
        if state.fingerprint() in self._tried:
            return None
        self._tried.add(state.fingerprint())
        for step in self._key_doors(state, nodes):
            trial = state.copy()
            trial.keys[self._dungeon(step.room_id)] -= 1
            self._open(trial, step)
            found = self._search(trial, [*plan, step])
            if found is not None:
                return found
        return None

    # ---- movement ----

    def reachable_nodes(self, state: WorldState) -> set[RouteNode]:
        """Every (room, cell, season) that the hero can reach now."""
        start = (self.world.start, self.world.start_cell, SEASONS.index(self.world.season))
        seen = {start}
        queue = deque([start])
        while queue:
            for node in self._neighbours(queue.popleft(), state):
                if node not in seen and self._can_stand(node, state):
                    seen.add(node)
                    queue.append(node)
        return seen

    def _neighbours(self, node: RouteNode, state: WorldState) -> Iterator[RouteNode]:
        room_id, (column, row), season = node
        for obj in self.world.rooms[room_id].of_kind("warp"):
            if obj.cell == (column, row) and obj.target and state.is_present(obj, room_id, season):
                yield obj.target, obj.arrival, season
        if self._tile(node).act == STUMP and ROD in state.owned:
            yield from ((room_id, (column, row), other) for other in state.seasons)
        for side, (dx, dy) in STEPS.items():
            x, y = column + dx, row + dy
            if 0 <= x < COLUMNS and 0 <= y < ROWS:
                yield room_id, (x, y), season
                yield from self._jump(room_id, (x, y), (x + dx, y + dy), season, state)
            elif (over := room_id.neighbour(side)) in self.world.rooms and over is not None:
                yield over, (x % COLUMNS, y % ROWS), season

    def _jump(self, room_id: RoomId, hole: Cell, land: Cell, season: int, state: WorldState) -> Iterator[RouteNode]:
        """Jump over one hole with the feather."""
        inside = 0 <= land[0] < COLUMNS and 0 <= land[1] < ROWS
        tile = self._tile((room_id, hole, season))
        if inside and tile.solid == HAZARD and tile.ground != WATER and TREASURES["feather"] in state.owned:
            yield room_id, land, season

    def _tile(self, node: RouteNode) -> Tile:
        room_id, (column, row), season = node
        return self.tiles[self._maps[room_id, season][row][column]]

    def _can_stand(self, node: RouteNode, state: WorldState) -> bool:
        """Whether the hero can stand at a node."""
        room_id, cell, _ = node
        if cell in self._blocked[room_id]:
            return False
        tile = self._tile(node)
        if tile.act in OPENS:
            return OPENS[tile.act] in state.owned
        if tile.act in LOCKS:
            return (room_id, edge_of(cell)) in state.doors
        if tile.act == SHUTTER:
            return state.has_flag(room_id, SOLVED)
        if tile.act == PUSH:
            return False
        if tile.solid == HAZARD:
            return tile.ground == WATER and TREASURES["flippers"] in state.owned
        return tile.solid != FULL

    # ---- actions ----

    def _take_all_steps(self, state: WorldState, nodes: set[RouteNode]) -> Iterator[PlanStep]:
        """Take every possible step from the reachable nodes, and yield these steps."""
        cells: dict[RoomId, dict[Cell, int]] = {}
        for room_id, cell, season in sorted(nodes):
            cells.setdefault(room_id, {}).setdefault(cell, season)
        for room_id in cells:
            state.set_flag(room_id, VISITED)
            state.can_fight |= SWORD in state.owned and bool(self.world.rooms[room_id].of_kind("enemy"))
        state.update_milestones()
        for room_id, here in cells.items():
            room = self.world.rooms[room_id]
            yield from self._solve(state, room, here)
            yield from self._meet_objects(state, room, here)
            yield from self._free_locks(state, room, here)

    def _solve(self, state: WorldState, room: Room, here: dict[Cell, int]) -> Iterator[PlanStep]:
        if room.solve == "never" or state.has_flag(room.room_id, SOLVED):
            return
        if room.solve == "cleared":
            possible = SWORD in state.owned
        else:
            buttons = [cell for cell in cells_with(room, BUTTON)]
            possible = all(cell in here for cell in buttons)
            possible = possible and self._pushable(state, room, here)
        if possible:
            state.set_flag(room.room_id, SOLVED)
            state.update_milestones()
            yield PlanStep("clear" if room.solve == "cleared" else "press", room.room_id)

    def _pushable(self, state: WorldState, room: Room, here: dict[Cell, int]) -> bool:
        """Whether blocks can be pushed onto all switches of the room."""
        switches = frozenset(cells_with(room, HEAVY))
        if not switches:
            return True
        season = next(iter(here.values()))
        blocks = frozenset(cells_with(room, PUSH))
        cells = [(x, y) for y in range(ROWS) for x in range(COLUMNS)]
        floor = blocks | {cell for cell in cells if self._can_stand((room.room_id, cell, season), state)}
        return any(plan_pushes(cell, floor, blocks, switches) is not None for cell in here)

    def _meet_objects(self, state: WorldState, room: Room, here: dict[Cell, int]) -> Iterator[PlanStep]:
        treasures = [obj for obj in room.objects if obj.kind in ("treasure", "chest")]
        for obj in room.objects:
            season = self._season_to_meet(obj, here)
            if season is None or not state.is_present(obj, room.room_id, season):
                continue
            if obj.kind in ("treasure", "chest"):
                second = obj is not treasures[0]
                if state.has_flag(room.room_id, SECOND_ITEM if second else ITEM):
                    continue
                state.take(obj, room.room_id, second, season)
                yield PlanStep("take" if obj.kind == "treasure" else "talk", room.room_id, obj.cell)
            elif obj.kind in ("person", "sign", "enter"):
                before = state.fingerprint()
                state.run_script(obj.script, room.room_id, season)
                if state.fingerprint() != before and obj.kind != "enter":
                    yield PlanStep("talk", room.room_id, obj.cell)

    def _season_to_meet(self, obj: RoomObject, here: dict[Cell, int]) -> int | None:
        """A season in which the hero can reach the object, or None."""
        if obj.kind == "enter":
            return next(iter(here.values()))
        if obj.kind == "treasure":
            return here.get(obj.cell)
        column, row = obj.cell
        beside = [(column + dx, row + dy) for dx, dy in STEPS.values()]
        return next((here[cell] for cell in beside if cell in here), None)

    # ---- locks ----

    def _locks(self, state: WorldState, room: Room, here: dict[Cell, int]) -> Iterator[tuple[PlanStep, int]]:
        """Closed doors that the hero can stand before."""
        for act in LOCKS:
            for column, row in cells_with(room, act):
                closed = (room.room_id, edge_of((column, row))) not in state.doors
                if closed and any((column + dx, row + dy) in here for dx, dy in STEPS.values()):
                    yield PlanStep("open", room.room_id, (column, row)), act

    def _free_locks(self, state: WorldState, room: Room, here: dict[Cell, int]) -> Iterator[PlanStep]:
        """Doors that open without a small key."""
        for step, act in list(self._locks(state, room, here)):
            if act == BOMB:
                can = TREASURES["bombs"] in state.owned
            else:
                can = act == BOSS_KEY and self._dungeon(step.room_id) in state.boss_keys
            if can and (step.room_id, edge_of(step.cell)) not in state.doors:
                self._open(state, step)
                yield step

    def _key_doors(self, state: WorldState, nodes: set[RouteNode]) -> list[PlanStep]:
        """Doors that a small key in hand opens."""
        cells: dict[RoomId, dict[Cell, int]] = {}
        for room_id, cell, season in sorted(nodes):
            cells.setdefault(room_id, {})[cell] = season
        found: dict[tuple[RoomId, int], PlanStep] = {}
        for room_id, here in cells.items():
            for step, act in self._locks(state, self.world.rooms[room_id], here):
                if act == KEY and state.keys.get(self._dungeon(room_id), 0) > 0:
                    found.setdefault((room_id, edge_of(step.cell)), step)
        return list(found.values())

    def _dungeon(self, room_id: RoomId) -> int:
        return dungeon_of(self.world.rooms[room_id])

    def _open(self, state: WorldState, step: PlanStep) -> None:
        """Open a door on both sides."""
        edge = edge_of(step.cell)
        state.doors.add((step.room_id, edge))
        column, row = step.cell
        if column in (0, COLUMNS - 1) or row in (0, ROWS - 1):
            over = step.room_id.neighbour(DIRECTIONS[edge])
            if over is not None:
                state.doors.add((over, (edge + 2) % 4))


def find_plan(world: World) -> list[PlanStep]:
    """Steps that finish a world, in order. Raise WorldError if it cannot be finished."""
    return WorldPlanner(world).find_plan()


def visited_rooms(world: World) -> set[RoomId]:
    """Rooms that the hero visits when he takes every possible step."""
    planner = WorldPlanner(world)
    planner.find_plan()
    return {room_id for room_id, room_flags in planner.furthest.room_flags.items() if room_flags & VISITED}
