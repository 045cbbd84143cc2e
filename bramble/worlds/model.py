"""The parts of a world, as parsed from worlds/*.txt. Plain data: no files, no encoding.

Cells are (column, row) with 0 <= column < 10 and 0 <= row < 8; rooms are Place(group, room).
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

COLUMNS = 10
ROWS = 8
STEPS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
"""Change of column and row per direction, clockwise as the engine numbers directions."""
DIRECTIONS = tuple(STEPS)
SEASONS = ("spring", "summer", "autumn", "winter")
THEMES = ("outdoors", "house", "cave", "dungeon1", "dungeon2", "dungeon3")
LOOKS = ("elder", "woman", "man", "keeper", "child", "merchant")
ENEMIES = {"walker": 0x09, "spitter": 0x0C, "charger": 0x10, "bat": 0x32, "boss": 0x78}
DIFFICULTIES = ("harmless", "normal", "harsh")
SOLVES = ("never", "cleared", "pressed")
TREASURES = {
    "bombs": 0x03,
    "sword": 0x05,
    "rod": 0x07,
    "bracelet": 0x16,
    "feather": 0x17,
    "rupees": 0x28,
    "heart": 0x29,
    "heart_container": 0x2A,
    "heart_piece": 0x2B,
    "flippers": 0x2E,
    "small_key": 0x30,
    "boss_key": 0x31,
    "compass": 0x32,
    "map": 0x33,
    "essence": 0x40,
}
TRADE = 0x41
GROUPS = (0, 3, 4, 5)
"""Outdoors, houses, dungeons and caves."""
VISITED, ITEM, SECOND_ITEM, SOLVED = 0x10, 0x20, 0x40, 0x80

Cell = tuple[int, int]


class WorldError(Exception):
    """A world that cannot be built. The message names file, line and mistake."""


class RoomId(NamedTuple):
    """A room: its group (0 outdoors, 3 houses, 4 and 5 dungeons and caves) and number (row * 16 + column).

    A tuple because path searches hash and compare millions of them.
    """

    group: int
    room: int

    def __str__(self) -> str:
        return f"{self.group}:{self.room:02x}"

    def neighbour(self, direction: str) -> "RoomId | None":
        """The room beyond that edge, or None at the border of the map."""
        column, row = self.room & 15, self.room >> 4
        dx, dy = STEPS[direction]
        column, row = column + dx, row + dy
        return RoomId(self.group, row * 16 + column) if 0 <= column < 16 and 0 <= row < 16 else None


FIRST_ROOM = RoomId(0, 0)


@dataclass(frozen=True, slots=True)
class ScriptCondition:
    """One condition of a script or a record: kind is owns, flag, solved, rupees, essences, season or trade."""

    kind: str
    value: int
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a script: its word with numeric arguments, or the text that it shows."""

    word: str
    values: tuple[int, ...] = ()
    text: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Branch:
    """Steps that run when all tests hold; then the script ends. No tests: always."""

    conditions: tuple[ScriptCondition, ...]
    statements: tuple[Statement, ...]


Script = tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class RoomObject:
    """An object at a cell. The kind decides which fields apply.

    person: look, script. enemy: enemy. treasure, chest: treasure, amount, hidden, script. sign: script.
    warp: target, arrival, facing. enter: script. `only` holds the conditions of its presence.
    """

    kind: Literal["person", "enemy", "treasure", "chest", "sign", "warp", "enter"]
    cell: Cell
    line: int
    only: tuple[ScriptCondition, ...] = ()
    look: str = ""
    enemy: str = ""
    treasure: str = ""
    amount: int = 0
    hidden: bool = False
    script: Script = ()
    target: RoomId | None = None
    arrival: Cell = (0, 0)
    facing: str = "down"


@dataclass(slots=True)
class Room:
    """Ten by eight letters (see art/tiles.txt), the objects of the room, and how it is solved."""

    room_id: RoomId
    theme: str
    solve: str
    line: int
    rows: list[str] = field(default_factory=list)
    seasons: list[tuple[frozenset[str], list[str]]] = field(default_factory=list)
    objects: list[RoomObject] = field(default_factory=list)

    def rows_in(self, season: str) -> list[str]:
        """The map in a season. The letter `-` of an overlay keeps the letter below."""
        rows = self.rows
        for names, overlay in self.seasons:
            if season in names:
                rows = [
                    "".join(o if o != "-" else b for b, o in zip(*pair, strict=True))
                    for pair in zip(rows, overlay, strict=True)
                ]
        return rows

    def of_kind(self, kind: str) -> list[RoomObject]:
        """The objects of one kind, in file order."""
        return [obj for obj in self.objects if obj.kind == kind]


@dataclass(frozen=True, slots=True)
class RamCondition:
    """A statement about RAM: the byte at `offset` of entry `name` of shared/game/ram/ram.tsv, compared with `value`.

    bit: that bit is set. at_least: the byte (or decimal number) is at least value. count: at least value bits are set.
    """

    name: str
    comparison: Literal["bit", "at_least", "count"]
    value: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class WorldMilestone:
    """A step towards the end of a world, reached when all conditions hold together."""

    name: str
    title: str
    conditions: tuple[RamCondition, ...]


@dataclass(slots=True)
class World:
    """A whole world."""

    name: str
    title: str = ""
    file: str = ""
    start: RoomId = FIRST_ROOM
    start_cell: Cell = (4, 4)
    start_facing: str = "down"
    season: str = "spring"
    health: int = 12
    flags: dict[str, int] = field(default_factory=dict)
    trades: dict[str, tuple[int, str]] = field(default_factory=dict)
    rooms: dict[RoomId, Room] = field(default_factory=dict)
    milestones: tuple[WorldMilestone, ...] = ()

    def where(self, line: int) -> str:
        """File and line, as prefix of an error message."""
        return f"{self.file} line {line}"
