"""Parses scripts and conditions of a world file: the indented lines below a person, a sign or a chest.

if not owns sword and rupees 10
  say Take this blade.
  pay 10
  give sword
else
  say Mind the beasts.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from bramble.worlds.model import (
    DIRECTIONS,
    GROUPS,
    SEASONS,
    TREASURES,
    Branch,
    Cell,
    RoomId,
    Script,
    ScriptCondition,
    Statement,
    World,
    WorldError,
)
from bramble.worlds.script import COUNTED, encode_text, give_statements, season_mask, treasure_id

Row = tuple[int, str]
PLAIN = ScriptCondition("owns", 0)
ESSENCES = 8  # bits of a byte


def parse_room_id(text: str) -> RoomId:
    """`GROUP:ROOM`, the room in hexadecimal: row and column of the map."""
    group, separator, room = text.partition(":")
    if not separator:
        raise ValueError(f"{text!r} is not a room: write GROUP:ROOM, such as 0:3a")
    room_id = RoomId(int(group), int(room, 16))
    if room_id.group not in GROUPS or not 0 <= room_id.room <= 255:
        raise ValueError(f"there is no room {text}: groups are {', '.join(map(str, GROUPS))}, rooms 00 to ff")
    return room_id


def parse_cell(text: str) -> Cell:
    """`column,row`."""
    column, row = (int(value) for value in text.split(","))
    if not (0 <= column < 10 and 0 <= row < 8):
        raise ValueError(f"the cell {text} lies outside of the room: columns are 0-9, rows 0-7")
    return column, row


def parse_direction(word: str) -> str:
    """One of up, right, down, left."""
    if word not in DIRECTIONS:
        raise ValueError(f"unknown direction {word!r}, use one of: {', '.join(DIRECTIONS)}")
    return word


def _owned(name: str, world: World, negated: bool) -> ScriptCondition:
    if name in world.trades:
        return ScriptCondition("trade", world.trades[name][0], negated)
    if name not in TREASURES:
        raise ValueError(f"unknown treasure {name!r}, use one of: {', '.join([*TREASURES, *world.trades])}")
    return ScriptCondition("owns", TREASURES[name], negated)


def parse_condition(text: str, world: World) -> ScriptCondition:
    """One condition: `[not] owns X | flag X | solved | rupees N | essences N | season NAME...`."""
    words = text.split()
    negated = words[0] == "not"
    kind, arguments = words[negated], words[negated + 1 :]
    if kind == "owns":
        return _owned(arguments[0], world, negated)
    if kind == "flag":
        return ScriptCondition("flag", flag_number(arguments[0], world), negated)
    if kind == "season":
        return ScriptCondition("season", season_mask(arguments), negated)
    if kind == "solved":
        return ScriptCondition("solved", 0, negated)
    if kind in ("rupees", "essences"):
        return ScriptCondition(kind, _small(arguments[0]), negated)
    raise ValueError(f"unknown condition {kind!r}: use owns, flag, solved, rupees, essences or season")


def parse_conditions(text: str, world: World) -> tuple[ScriptCondition, ...]:
    """Conditions joined by `and`."""
    return tuple(parse_condition(part, world) for part in text.split(" and "))


def flag_number(name: str, world: World) -> int:
    """Number of a flag that the world declares."""
    if name not in world.flags:
        raise ValueError(f"unknown flag {name!r}: declare it by a line `flag {name}` at the top of the file")
    return world.flags[name]


def _small(text: str) -> int:
    number = int(text)
    if not 0 < number < 100:
        raise ValueError(f"the number {number} is not between 1 and 99")
    return number


def parse_amount(name: str, words: list[str], world: World) -> int:
    """The amount after a treasure's name; for the rod, the seasons."""
    treasure_id(name, world.trades) if name in world.trades else _owned(name, world, False)
    if name == "rod":
        return season_mask(words)
    if name in COUNTED:
        amount = _small(words[0]) if words else (4 if name == "heart" else 1)
        if name == "essence" and amount > ESSENCES:
            raise ValueError(f"there is no essence {amount}: they are numbered 1 to {ESSENCES}")
        return amount
    if words:
        raise ValueError(f"{name} has no amount: remove {' '.join(words)!r}")
    return 1


def _season_number(word: str) -> int:
    if word not in SEASONS:
        raise ValueError(f"unknown season {word!r}, use one of: {', '.join(SEASONS)}")
    return SEASONS.index(word)


def _warp(words: list[str], line: int) -> Statement:
    room_id, (column, row) = parse_room_id(words[0]), parse_cell(words[1])
    facing = DIRECTIONS.index(parse_direction(words[2]))
    return Statement("warp", (room_id.group, room_id.room, row << 4 | column, facing), line=line)


def _parse_line(line: int, text: str, world: World) -> tuple[Statement, ...]:
    """The statements of one line."""
    word, _, rest = text.partition(" ")
    words = rest.split()
    if word in ("say", "ask"):
        encode_text(rest, word == "ask")
        return (Statement(word, text=rest, line=line),)
    if word == "give":
        return give_statements(words[0], parse_amount(words[0], words[1:], world), world.trades, line)
    if word == "take":
        return (Statement("take", (treasure_id(words[0], world.trades),), line=line),)
    if word == "pay":
        return (Statement("pay", (_small(words[0]),), line=line),)
    if word in ("set", "clear"):
        return (Statement(word, (flag_number(words[0], world),), line=line),)
    if word == "season":
        return (Statement("season", (_season_number(words[0]),), line=line),)
    if word == "solve":
        return (Statement("solve", line=line),)
    if word == "warp":
        return (_warp(words, line),)
    raise ValueError(f"unknown word {word!r}: use say, ask, give, take, pay, set, clear, season, solve or warp")


@contextmanager
def errors_at(world: World, line: int) -> Iterator[None]:
    """Turn errors inside the block into a WorldError of this line."""
    try:
        yield
    except IndexError as error:
        raise WorldError(f"{world.where(line)}: an argument is missing, see bramble/README.md") from error
    except KeyError as error:
        raise WorldError(f"{world.where(line)}: unknown name {error}") from error
    except ValueError as error:
        raise WorldError(f"{world.where(line)}: {error}") from error


def parse_script(rows: list[Row], world: World) -> Script:
    """A script from its lines: statements only, or branches that start with `if ...` and `else`."""
    branches: list[tuple[tuple[ScriptCondition, ...], list[Statement]]] = []
    for line, text in rows:
        words = text.strip()
        with errors_at(world, line):
            if words.startswith("if "):
                branches.append((parse_conditions(words[3:], world), []))
            elif words == "else":
                branches.append(((), []))
            else:
                if not branches:
                    branches.append(((), []))
                branches[-1][1].extend(_parse_line(line, words, world))
    return tuple(Branch(conditions, tuple(statements)) for conditions, statements in branches)
