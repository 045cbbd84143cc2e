"""Refuse a world that cannot be played: a sentence with file and line for each kind of mistake.

Works on the map alone: edges of neighbours must agree, every room must be reachable when all doors and brambles
are open, every way leads back, and nothing exceeds what the engine can hold.
"""

from collections import deque
from collections.abc import Iterator

from bramble.art import ACTS, Tile, load_art
from bramble.model import COLUMNS, ROWS, SEASONS, Cell, Place, Room, Thing, World, WorldError

OPENABLE = frozenset(ACTS.index(act) for act in ("cut", "lift", "bomb", "key", "boss_key", "shutter", "push"))
TRAPS = frozenset(ACTS.index(act) for act in ("cut", "lift", "push"))
LIMITS = {"person": 10, "enemy": 8, "warp": 4, "sign": 6}
TILES = {"shutter": 6, "button": 8}
"""Of each act so many tiles in a room; switches for blocks count as buttons."""
MAX_TREASURES = 2
"""A room has two flags for things that are taken once."""
MAX_ROOMS_TEXT = 256
EDGES = {"right": "left", "down": "up"}
BREAKS = "|"
"""Letters of a text that are not printed."""

Node = tuple[Place, Cell]


def tile(letter: str) -> Tile:
    """The metatile that a letter of a map stands for."""
    return load_art().by_letter[letter]


def passable(letter: str) -> bool:
    """Whether a hero with everything can ever stand here."""
    found = tile(letter)
    return found.solid != 0x0F or found.act in OPENABLE


def _edge_letters(rows: list[str], side: str) -> str:
    return {"up": rows[0], "down": rows[-1]}.get(side) or "".join(row[0 if side == "left" else -1] for row in rows)


def _edge(rows: list[str], side: str) -> list[bool]:
    return [passable(letter) for letter in _edge_letters(rows, side)]


def _check_border(world: World, room: Room) -> None:
    """What grows or lies on the outer cells would trap a hero who comes in there."""
    for side in ("up", "right", "down", "left"):
        for at, letter in enumerate(_edge_letters(room.rows, side)):
            if tile(letter).act in TRAPS:
                raise WorldError(
                    f"{world.where(room.line)}: {tile(letter).name} on the {side} edge of room {room.place} "
                    f"(number {at}): move it inside"
                )


def _exits(room: Room) -> set[Cell]:
    """Cells of warps: they may lie on an edge without leading over it."""
    return {thing.cell for thing in room.of_kind("warp")}


def _check_edge(world: World, room: Room, side: str) -> None:
    place = room.place.neighbour(side)
    other = world.rooms.get(place) if place else None
    opposite = {"up": "down", "right": "left", "down": "up", "left": "right"}[side]
    for season in SEASONS:
        mine = _edge(room.rows_in(season), side)
        theirs = _edge(other.rows_in(season), opposite) if other else [False] * len(mine)
        for at, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            cell = {"up": (at, 0), "down": (at, ROWS - 1), "left": (0, at), "right": (COLUMNS - 1, at)}[side]
            if a != b and a and cell not in _exits(room):
                to = f"room {place} is closed there" if other else "there is no room"
                raise WorldError(
                    f"{world.where(room.line)}: room {room.place} is open on its {side} edge at {cell} in {season}, "
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
                f"{world.where(room.line)}: room {room.place} has {counts[kind]} of {kind}, the engine holds {limit}"
            )
    if len(treasures) > MAX_TREASURES:
        raise WorldError(
            f"{world.where(room.line)}: room {room.place} has {len(treasures)} treasures, "
            f"it can remember {MAX_TREASURES}"
        )
    if room.solve == "cleared" and not room.of_kind("enemy"):
        raise WorldError(f"{world.where(room.line)}: room {room.place} is solved by clearing it, but has no enemy")


def _check_tiles(world: World, room: Room) -> None:
    """Shutters beyond the engine's list stay shut, and buttons beyond its byte are not waited for."""
    for season in SEASONS:
        acts = [ACTS[tile(letter).act] for row in room.rows_in(season) for letter in row]
        counts = {"shutter": acts.count("shutter"), "button": acts.count("button") + acts.count("heavy")}
        for act, limit in TILES.items():
            if counts[act] > limit:
                raise WorldError(
                    f"{world.where(room.line)}: room {room.place} has {counts[act]} tiles that act as {act}, "
                    f"the engine holds {limit}"
                )


def _check_thing(world: World, room: Room, thing: Thing) -> None:
    column, row = thing.cell
    here = tile(room.rows[row][column])
    standing = thing.kind in ("person", "enemy", "treasure", "chest")
    if standing and here.solid and thing.kind != "enemy":
        raise WorldError(f"{world.where(thing.line)}: the {thing.kind} stands on {here.name}, which is solid")
    if thing.kind == "sign" and not here.solid:
        raise WorldError(f"{world.where(thing.line)}: a sign belongs on a solid tile such as S, not on {here.name}")
    if thing.kind == "warp":
        _check_warp(world, room, thing)


def _check_warp(world: World, room: Room, thing: Thing) -> None:
    where = world.where(thing.line)
    target = world.rooms.get(thing.target) if thing.target else None
    if target is None:
        raise WorldError(f"{where}: the warp leads to room {thing.target}, which does not exist")
    column, row = thing.arrival
    if not passable(target.rows[row][column]):
        raise WorldError(f"{where}: the warp leads into {tile(target.rows[row][column]).name} of room {thing.target}")
    if any(other.cell == thing.arrival for other in target.of_kind("warp")):
        raise WorldError(
            f"{where}: the warp ends on another warp, at {thing.arrival} of room {thing.target}: end beside it"
        )
    if not any(back.target == room.place for back in target.of_kind("warp")):
        raise WorldError(
            f"{where}: the warp leads to room {thing.target}, from which no warp leads back to {room.place}"
        )


def _check_script(world: World, thing: Thing) -> None:
    """The engine goes wherever a script sends it, also where there is no room."""
    for step in (step for branch in thing.script for step in branch.steps if step.word == "warp"):
        group, number, pos, _ = step.values
        place, cell = Place(group, number), (pos & 15, pos >> 4)
        if place not in world.rooms:
            raise WorldError(f"{world.where(step.line)}: the script warps to room {place}, which does not exist")
        if not _open(world.rooms[place], cell):
            raise WorldError(f"{world.where(step.line)}: the script warps into a wall, at {cell} of room {place}")


def _check_texts(world: World, thing: Thing) -> None:
    """A letter that is not drawn would be a gap on the screen, and in RAM a letter that nobody can see."""
    for step in (step for branch in thing.script for step in branch.steps if step.text):
        if unknown := set(step.text) - load_art().letters - set(BREAKS):
            raise WorldError(f"{world.where(step.line)}: the letter {min(unknown)!r} is not drawn in art/font.txt")


def _neighbours(world: World, node: Node) -> Iterator[Node]:
    place, (column, row) = node
    room = world.rooms[place]
    for thing in room.of_kind("warp"):
        if thing.cell == (column, row) and thing.target is not None:
            yield thing.target, thing.arrival
    for side, dx, dy in (("up", 0, -1), ("right", 1, 0), ("down", 0, 1), ("left", -1, 0)):
        x, y = column + dx, row + dy
        if 0 <= x < COLUMNS and 0 <= y < ROWS:
            yield place, (x, y)
        elif (over := place.neighbour(side)) in world.rooms and over is not None:
            yield over, (x % COLUMNS, y % ROWS)


def _open(room: Room, cell: Cell) -> bool:
    column, row = cell
    return any(passable(room.rows_in(season)[row][column]) for season in SEASONS)


def reachable_rooms(world: World) -> set[Place]:
    """Rooms that a hero with all items could reach from the start."""
    start = (world.start, world.start_cell)
    seen: set[Node] = {start}
    queue = deque([start])
    while queue:
        for node in _neighbours(world, queue.popleft()):
            if node not in seen and _open(world.rooms[node[0]], node[1]):
                seen.add(node)
                queue.append(node)
    return {place for place, _ in seen}


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
        for thing in room.things:
            _check_thing(world, room, thing)
            _check_script(world, thing)
            _check_texts(world, thing)
    for place in sorted(set(world.rooms) - reachable_rooms(world)):
        raise WorldError(f"{world.where(world.rooms[place].line)}: room {place} cannot be reached from the start")
