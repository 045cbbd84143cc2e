"""Parses a world from its text file. bramble/README.md describes the format.

Every mistake is a WorldError with file and line. check.py checks that the rooms fit together.
"""

from dataclasses import replace
from pathlib import Path

from bramble.art.loader import load_art
from bramble.worlds.milestones import parse_milestone
from bramble.worlds.model import (
    COLUMNS,
    ENEMIES,
    LOOKS,
    ROWS,
    SEASONS,
    SOLVES,
    THEMES,
    TREASURES,
    Branch,
    Room,
    RoomObject,
    ScriptCondition,
    World,
    WorldError,
    WorldMilestone,
)
from bramble.worlds.script import give_statements
from bramble.worlds.script_parser import (
    Row,
    errors_at,
    parse_amount,
    parse_cell,
    parse_conditions,
    parse_direction,
    parse_room_id,
    parse_script,
)

WORLDS = Path(__file__).parent
FIRST_FLAG = 0x40
"""Lower global flags have a meaning in the original game; Bramble uses the flags from here on."""
LAST_FLAG = 0x7F
LAST_TRADE = 0x0B
MAX_HEALTH = 64
OBJECT_KINDS = ("person", "enemy", "treasure", "chest", "sign", "warp", "enter")


class _WorldParser:
    """Builds a World. Each `_on_WORD` takes the line number and the words after the first of a line."""

    def __init__(self, name: str, text: str) -> None:
        numbered = [(number, line.rstrip()) for number, line in enumerate(text.splitlines(), start=1)]
        self.rows: list[Row] = [(n, line) for n, line in numbered if line.strip() and not line.startswith("# ")]
        self.at = 0
        self.world = World(name, file=f"{name}.txt")
        self.room: Room | None = None
        self.only: tuple[ScriptCondition, ...] = ()
        self.milestones: list[tuple[int, str]] = []

    def read(self) -> World:
        while self.at < len(self.rows):
            number, line = self.rows[self.at]
            self.at += 1
            word, _, rest = line.partition(" ")
            action = getattr(self, f"_on_{word}", None)
            with errors_at(self.world, number):
                if action is None:
                    raise ValueError(f"unknown word {word!r} at the start of a line")
                action(number, rest.split(), rest)
        self._read_milestones()
        return self.world

    def _read_milestones(self) -> None:
        """Milestones come last because they may name flags and rooms that the file declares later."""
        found: list[WorldMilestone] = []
        for number, text in self.milestones:
            with errors_at(self.world, number):
                head, _, condition = text.partition(":")
                name, _, title = head.partition(" ")
                if name in (milestone.name for milestone in found):
                    raise ValueError(f"a second milestone {name!r}: their names must differ")
                found.append(parse_milestone(name, title.strip(), condition.strip(), self.world))
        self.world.milestones = tuple(found)

    def _indented(self) -> list[Row]:
        rows = []
        while self.at < len(self.rows) and self.rows[self.at][1].startswith(" "):
            rows.append(self.rows[self.at])
            self.at += 1
        return rows

    def _map(self, number: int, blank: str) -> list[str]:
        letters = {*load_art().by_letter, *blank}
        rows = self.rows[self.at : self.at + ROWS]
        self.at += ROWS
        if len(rows) < ROWS:
            raise WorldError(f"{self.world.where(number)}: the map has {len(rows)} rows instead of {ROWS}")
        for line, text in rows:
            if len(text) != COLUMNS:
                raise WorldError(f"{self.world.where(line)}: {len(text)} letters instead of {COLUMNS}: {text!r}")
            if unknown := set(text) - letters:
                raise WorldError(f"{self.world.where(line)}: unknown tile {sorted(unknown)[0]!r}, see art/tiles.txt")
        return [text for _, text in rows]

    # ---- the header of the file ----

    def _on_world(self, number: int, words: list[str], rest: str) -> None:
        self.world.title = rest

    def _on_start(self, number: int, words: list[str], rest: str) -> None:
        self.world.start = parse_room_id(words[0])
        self.world.start_cell = parse_cell(words[1])
        self.world.start_facing = parse_direction(words[2])

    def _on_health(self, number: int, words: list[str], rest: str) -> None:
        self.world.health = int(words[0]) * 4
        if not 0 < self.world.health <= MAX_HEALTH:
            raise ValueError(f"{words[0]} hearts: use 1 to {MAX_HEALTH // 4}")

    def _on_flag(self, number: int, words: list[str], rest: str) -> None:
        for name in words:
            if name in self.world.flags:
                raise ValueError(f"a second flag {name!r}")
            if FIRST_FLAG + len(self.world.flags) > LAST_FLAG:
                raise ValueError(f"more than {LAST_FLAG - FIRST_FLAG + 1} flags")
            self.world.flags[name] = FIRST_FLAG + len(self.world.flags)

    def _on_trade(self, number: int, words: list[str], rest: str) -> None:
        name, text = (part.strip() for part in rest.partition(":")[::2])
        if name in self.world.trades or name in TREASURES:
            raise ValueError(f"there is a treasure {name!r} already")
        if len(self.world.trades) == LAST_TRADE:
            raise ValueError(f"more than {LAST_TRADE} trade goods")
        self.world.trades[name] = (len(self.world.trades) + 1, text)

    def _on_milestone(self, number: int, words: list[str], rest: str) -> None:
        self.milestones.append((number, rest))

    # ---- rooms ----

    def _on_room(self, number: int, words: list[str], rest: str) -> None:
        room_id = parse_room_id(words[0])
        if room_id in self.world.rooms:
            raise ValueError(f"room {room_id} is declared twice")
        theme = words[1] if len(words) > 1 else "outdoors"
        solve = words[3] if len(words) == 4 and words[2] == "solve" else "never"
        if theme not in THEMES or solve not in SOLVES or (len(words) > 2 and solve == "never"):
            raise ValueError(f"write `room GROUP:ROOM THEME [solve HOW]`: {', '.join(THEMES)}; {', '.join(SOLVES[1:])}")
        self.room = self.world.rooms[room_id] = Room(room_id, theme, solve, number)
        self.room.rows = self._map(number, "")

    def _current_room(self) -> Room:
        if self.room is None:
            raise ValueError("this line must follow a room")
        return self.room

    def _on_season(self, number: int, words: list[str], rest: str) -> None:
        if unknown := set(words) - set(SEASONS):
            raise ValueError(f"unknown season {sorted(unknown)[0]!r}, use: {', '.join(SEASONS)}")
        if self.room is None:
            self.world.season = words[0]
        else:
            self.room.seasons.append((frozenset(words), self._map(number, "-")))

    def _on_only(self, number: int, words: list[str], rest: str) -> None:
        following = self.rows[self.at][1].split()[0] if self.at < len(self.rows) else ""
        if following not in OBJECT_KINDS:
            raise ValueError(
                f"`only` applies to the next line, which must start with one of: {', '.join(OBJECT_KINDS)}"
            )
        self.only = parse_conditions(rest, self.world)

    def _add(self, obj: RoomObject) -> None:
        self._current_room().objects.append(replace(obj, only=self.only))
        self.only = ()

    def _on_person(self, number: int, words: list[str], rest: str) -> None:
        if words[1] not in LOOKS:
            raise ValueError(f"unknown look {words[1]!r}, use one of: {', '.join(LOOKS)}")
        script = parse_script(self._indented(), self.world)
        self._add(RoomObject("person", parse_cell(words[0]), number, look=words[1], script=script))

    def _on_enemy(self, number: int, words: list[str], rest: str) -> None:
        if words[1] not in ENEMIES:
            raise ValueError(f"unknown enemy {words[1]!r}, use one of: {', '.join(ENEMIES)}")
        self._add(RoomObject("enemy", parse_cell(words[0]), number, enemy=words[1]))

    def _treasure(self, kind: str, number: int, words: list[str]) -> RoomObject:
        hidden = words[-1] == "hidden"
        name, arguments = words[1], words[2 : len(words) - hidden]
        amount = parse_amount(name, arguments, self.world)
        statements = give_statements(name, amount, self.world.trades, number, kind == "chest")
        extra = parse_script(self._indented(), self.world)
        if any(branch.conditions for branch in extra):
            raise ValueError("remove the `if` below the treasure: its script has no conditions")
        script = (Branch((), statements + tuple(step for branch in extra for step in branch.statements)),)
        obj = RoomObject("chest" if kind == "chest" else "treasure", parse_cell(words[0]), number, script=script)
        return replace(obj, treasure=name, amount=amount, hidden=hidden)

    def _on_treasure(self, number: int, words: list[str], rest: str) -> None:
        self._add(self._treasure("treasure", number, words))

    def _on_chest(self, number: int, words: list[str], rest: str) -> None:
        self._add(self._treasure("chest", number, words))

    def _on_sign(self, number: int, words: list[str], rest: str) -> None:
        self._add(RoomObject("sign", parse_cell(words[0]), number, script=parse_script(self._indented(), self.world)))

    def _on_warp(self, number: int, words: list[str], rest: str) -> None:
        if len(words) != 5 or words[1] != "to":
            raise ValueError("write `warp X,Y to GROUP:ROOM X,Y DIRECTION`")
        cell, _, target, arrival, facing = words
        obj = RoomObject("warp", parse_cell(cell), number, target=parse_room_id(target), arrival=parse_cell(arrival))
        self._add(replace(obj, facing=parse_direction(facing)))

    def _on_enter(self, number: int, words: list[str], rest: str) -> None:
        self._add(RoomObject("enter", (0, 0), number, script=parse_script(self._indented(), self.world)))


def parse_world(name: str, text: str) -> World:
    """The world in a text. Raise WorldError with file and line for the first mistake."""
    return _WorldParser(name, text).read()


def world_names() -> tuple[str, ...]:
    """Names of the world files."""
    return tuple(sorted(path.stem for path in WORLDS.glob("*.txt")))


def world_text(name: str) -> str:
    """The text of NAME.txt. Raise WorldError when there is no such file."""
    if name not in world_names():
        raise WorldError(f"there is no world {name!r}: use one of {', '.join(world_names())}, or wild:SEED")
    return (WORLDS / f"{name}.txt").read_text("utf-8")
