"""Refuses a world that cannot be played, with file and line of the mistake.

It checks the map alone: edges of neighbours agree, every room is reachable when all doors and brambles are open, every
warp has a warp back, and no count exceeds the engine's limits.
"""

from collections import deque
from collections.abc import Iterator

from bramble.art.loader import ACTS, Tile, load_art
from bramble.worlds.model import COLUMNS, ROWS, SEASONS, STEPS, Cell, Room, RoomId, RoomObject, World, WorldError

OPENABLE = frozenset(ACTS.index(act) for act in ("cut", "lift", "bomb", "key", "boss_key", "shutter", "push"))
TRAPS = frozenset(ACTS.index(act) for act in ("cut", "lift", "push"))
LIMITS = {"person": 10, "enemy": 8, "warp": 4, "sign": 6}
TILES = {"shutter": 6, "button": 8}
"""Limits of tiles with an act in one room; switches for blocks count as buttons."""
MAX_TREASURES = 2
"""A room has two flags for treasures that are taken once."""
BREAKS = "|"
"""Letters of a text that are not printed."""

Position = tuple[RoomId, Cell]


def tile_for(letter: str) -> Tile:
    """The metatile of a map letter."""
    return load_art().by_letter[letter]


def passable(letter: str) -> bool:
    """Whether a hero with all items can stand here."""
    found = tile_for(letter)
    return found.solid != 0x0F or found.act in OPENABLE


def _edge_letters(rows: list[str], side: str) -> str:
    return {"up": rows[0], "down": rows[-1]}.get(side) or "".join(row[0 if side == "left" else -1] for row in rows)


def _edge(rows: list[str], side: str) -> list[bool]:
    return [passable(letter) for letter in _edge_letters(rows, side)]


def _check_border(world: World, room: Room) -> None:
    """A bush, rock or block on an outer cell would trap a hero who enters there."""
    for side in ("up", "right", "down", "left"):
        for at, letter in enumerate(_edge_letters(room.rows, side)):
            if tile_for(letter).act in TRAPS:
                raise WorldError(
                    f"{world.where(room.line)}: {tile_for(letter).name} on the {side} edge of room {room.room_id} "
                    f"(number {at}): move it inside"
                )


def _exits(room: Room) -> set[Cell]:
    """Cells of warps: a warp may lie on an edge that has no neighbour."""
    return {obj.cell for obj in room.of_kind("warp")}


def _check_edge(world: World, room: Room, side: str) -> None:
    room_id = room.room_id.neighbour(side)
    other = world.rooms.get(room_id) if room_id else None
    opposite = {"up": "down", "right": "left", "down": "up", "left": "right"}[side]
    for season in SEASONS:
        mine = _edge(room.rows_in(season), side)
        theirs = _edge(other.rows_in(season), opposite) if other else [False] * len(mine)
        for at, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            cell = {"up": (at, 0), "down": (at, ROWS - 1), "left": (0, at), "right": (COLUMNS - 1, at)}[side]
            if a != b and a and cell not in _exits(room):
                to = f"room {room_id} is closed there" if other else "there is no room"
                raise WorldError(
                    f"{world.where(room.line)}: room {room.room_id} is open on its {side} edge at {cell} in {season}, "
                    f"but {to}"
                )


def _check_counts(world: World, room: Room) -> None:
    treasures = room.of_kind("treasure") + room.of_kind("chest")
    counts = {kind: len(room.of_kind(kind)) for kind in LIMITS}
    counts["person"] += len(room.of_kind("treasure"))
    counts["sign"] += len(room.of_kind("chest"))
    for kind, limit in LIMITS.items():
        if counts[kind] > limit:
            raise WorldError(
                f"{world.where(room.line)}: room {room.room_id} has {counts[kind]} of {kind}, the engine holds {limit}"
            )
    if len(treasures) > MAX_TREASURES:
        raise WorldError(
            f"{world.where(room.line)}: room {room.room_id} has {len(treasures)} treasures, "
            f"the engine holds {MAX_TREASURES}"
        )
    if room.solve == "cleared" and not room.of_kind("enemy"):
        raise WorldError(f"{world.where(room.line)}: room {room.room_id} is solved by clearing it, but has no enemy")


def _check_tiles(world: World, room: Room) -> None:
    """The engine ignores shutters beyond its list and buttons beyond the bits of its byte."""
    for season in SEASONS:
        acts = [ACTS[tile_for(letter).act] for row in room.rows_in(season) for letter in row]
        counts = {"shutter": acts.count("shutter"), "button": acts.count("button") + acts.count("heavy")}
        for act, limit in TILES.items():
            if counts[act] > limit:
                raise WorldError(
                    f"{world.where(room.line)}: room {room.room_id} has {counts[act]} tiles that act as {act}, "
                    f"the engine holds {limit}"
                )


def _check_object(world: World, room: Room, obj: RoomObject) -> None:
    column, row = obj.cell
    here = tile_for(room.rows[row][column])
    standing = obj.kind in ("person", "enemy", "treasure", "chest")
    if standing and here.solid and obj.kind != "enemy":
        raise WorldError(f"{world.where(obj.line)}: the {obj.kind} stands on {here.name}, which is solid")
    if obj.kind == "sign" and not here.solid:
        raise WorldError(f"{world.where(obj.line)}: a sign belongs on a solid tile such as S, not on {here.name}")
    if obj.kind == "warp":
        _check_warp(world, room, obj)


def _check_warp(world: World, room: Room, obj: RoomObject) -> None:
    where = world.where(obj.line)
    target = world.rooms.get(obj.target) if obj.target else None
    if target is None:
        raise WorldError(f"{where}: the warp leads to room {obj.target}, which does not exist")
    column, row = obj.arrival
    if not passable(target.rows[row][column]):
        raise WorldError(f"{where}: the warp leads into {tile_for(target.rows[row][column]).name} of room {obj.target}")
    if any(other.cell == obj.arrival for other in target.of_kind("warp")):
        raise WorldError(
            f"{where}: the warp ends on another warp, at {obj.arrival} of room {obj.target}: end beside it"
        )
    if not any(back.target == room.room_id for back in target.of_kind("warp")):
        raise WorldError(
            f"{where}: the warp leads to room {obj.target}, from which no warp leads back to {room.room_id}"
        )


def _check_script(world: World, obj: RoomObject) -> None:
    """The engine does not check the target of a script's warp."""
    for step in (step for branch in obj.script for step in branch.statements if step.word == "warp"):
        group, number, pos, _ = step.values
        room_id, cell = RoomId(group, number), (pos & 15, pos >> 4)
        if room_id not in world.rooms:
            raise WorldError(f"{world.where(step.line)}: the script warps to room {room_id}, which does not exist")
        if not _open(world.rooms[room_id], cell):
            raise WorldError(f"{world.where(step.line)}: the script warps into a wall, at {cell} of room {room_id}")


def _check_enter(world: World, room: Room, obj: RoomObject) -> None:
    """A script of `enter` runs while the rooms scroll. What loads a room again would leave the scroll unfinished."""
    if obj.kind != "enter" or not any(_walked_into(world, room, side) for side in STEPS):
        return
    for step in (step for branch in obj.script for step in branch.statements if step.word in ("season", "warp")):
        raise WorldError(
            f"{world.where(step.line)}: the script of `enter` has `{step.word}`, and the hero may walk into room "
            f"{room.room_id} from its neighbour: use a room that only warps lead to"
        )


def _walked_into(world: World, room: Room, side: str) -> bool:
    """Whether the hero may walk into a room on this side."""
    is_open = any(any(_edge(room.rows_in(season), side)) for season in SEASONS)
    return is_open and room.room_id.neighbour(side) in world.rooms


def _check_texts(world: World, obj: RoomObject) -> None:
    """A letter without a glyph would be a gap on the screen."""
    for step in (step for branch in obj.script for step in branch.statements if step.text):
        if unknown := set(step.text) - load_art().letters - set(BREAKS):
            raise WorldError(f"{world.where(step.line)}: the letter {min(unknown)!r} is not drawn in art/font.txt")


def _neighbours(world: World, position: Position) -> Iterator[Position]:
    room_id, (column, row) = position
    room = world.rooms[room_id]
    for obj in room.of_kind("warp"):
        if obj.cell == (column, row) and obj.target is not None:
            yield obj.target, obj.arrival
    for side, dx, dy in (("up", 0, -1), ("right", 1, 0), ("down", 0, 1), ("left", -1, 0)):
        x, y = column + dx, row + dy
        if 0 <= x < COLUMNS and 0 <= y < ROWS:
            yield room_id, (x, y)
        elif (over := room_id.neighbour(side)) in world.rooms and over is not None:
            yield over, (x % COLUMNS, y % ROWS)


def _open(room: Room, cell: Cell) -> bool:
    column, row = cell
    return any(passable(room.rows_in(season)[row][column]) for season in SEASONS)


def reachable_rooms(world: World) -> set[RoomId]:
    """Rooms that a hero with all items could reach from the start."""
    start = (world.start, world.start_cell)
    seen: set[Position] = {start}
    queue = deque([start])
    while queue:
        for position in _neighbours(world, queue.popleft()):
            if position not in seen and _open(world.rooms[position[0]], position[1]):
                seen.add(position)
                queue.append(position)
    return {room_id for room_id, _ in seen}


def check_world(world: World) -> None:
    """Raise WorldError, with file and line, for the first mistake found."""
    if world.start not in world.rooms:
        raise WorldError(f"{world.file}: the world starts in room {world.start}, which does not exist")
    if not _open(world.rooms[world.start], world.start_cell):
        raise WorldError(f"{world.file}: the world starts in a wall, at {world.start_cell} of room {world.start}")
    for room in world.rooms.values():
        for side in ("up", "right", "down", "left"):
            _check_edge(world, room, side)
        _check_border(world, room)
        _check_counts(world, room)
        _check_tiles(world, room)
        for obj in room.objects:
            _check_object(world, room, obj)
            _check_script(world, obj)
            _check_enter(world, room, obj)
            _check_texts(world, obj)
    for room_id in sorted(set(world.rooms) - reachable_rooms(world)):
        raise WorldError(f"{world.where(world.rooms[room_id].line)}: room {room_id} cannot be reached from the start")
