"""Read a world from its text file. The format is described in bramble/README.md.

Every mistake is a WorldError with file and line. Whether rooms fit together is the business of check.py.
"""

from dataclasses import replace
from pathlib import Path

from bramble.art import load_art
from bramble.milestones import parse_milestone
from bramble.model import (
    COLUMNS,
    ENEMIES,
    LOOKS,
    ROWS,
    SEASONS,
    SOLVES,
    THEMES,
    TREASURES,
    Branch,
    Milestone,
    Room,
    Test,
    Thing,
    World,
    WorldError,
)
from bramble.script import give_steps
from bramble.scriptfile import (
    Row,
    mistakes_of,
    parse_amount,
    parse_cell,
    parse_direction,
    parse_place,
    parse_script,
    parse_tests,
)

WORLDS = Path(__file__).parent / "worlds"
FIRST_FLAG = 0x40
"""Global flags below are known by their meaning to a reader of the original; ours are above them."""
LAST_FLAG = 0x7F
LAST_TRADE = 0x0B
MAX_HEALTH = 64
THINGS = ("person", "enemy", "treasure", "chest", "sign", "warp", "enter")


class _Reader:
    """Builds a World. Each `_on_WORD` takes the line number and the words after the first of a line."""

    def __init__(self, name: str, text: str) -> None:
        numbered = [(number, line.rstrip()) for number, line in enumerate(text.splitlines(), start=1)]
        self.rows: list[Row] = [(n, line) for n, line in numbered if line.strip() and not line.startswith("# ")]
        self.at = 0
        self.world = World(name, file=f"{name}.txt")
        self.room: Room | None = None
        self.only: tuple[Test, ...] = ()
        self.milestones: list[tuple[int, str]] = []

    def read(self) -> World:
        while self.at < len(self.rows):
            number, line = self.rows[self.at]
            self.at += 1
            word, _, rest = line.partition(" ")
            action = getattr(self, f"_on_{word}", None)
            with mistakes_of(self.world, number):
                if action is None:
                    raise ValueError(f"unknown word {word!r} at the start of a line")
                action(number, rest.split(), rest)
        self._read_milestones()
        return self.world

    def _read_milestones(self) -> None:
        """Last, because they may name what the file declares below them."""
        found: list[Milestone] = []
        for number, text in self.milestones:
            with mistakes_of(self.world, number):
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

    # ---- the head of the file ----

    def _on_world(self, number: int, words: list[str], rest: str) -> None:
        self.world.title = rest

    def _on_start(self, number: int, words: list[str], rest: str) -> None:
        self.world.start = parse_place(words[0])
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
        place = parse_place(words[0])
        if place in self.world.rooms:
            raise ValueError(f"room {place} stands twice in the file")
        theme = words[1] if len(words) > 1 else "outdoors"
        solve = words[3] if len(words) == 4 and words[2] == "solve" else "never"
        if theme not in THEMES or solve not in SOLVES or (len(words) > 2 and solve == "never"):
            raise ValueError(f"write `room GROUP:ROOM THEME [solve HOW]`: {', '.join(THEMES)}; {', '.join(SOLVES[1:])}")
        self.room = self.world.rooms[place] = Room(place, theme, solve, number)
        self.room.rows = self._map(number, "")

    def _here(self) -> Room:
        if self.room is None:
            raise ValueError("this belongs below a room")
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
        if following not in THINGS:
            raise ValueError(f"`only` is about the next line, and that is none of: {', '.join(THINGS)}")
        self.only = parse_tests(rest, self.world)

    def _add(self, thing: Thing) -> None:
        self._here().things.append(replace(thing, only=self.only))
        self.only = ()

    def _on_person(self, number: int, words: list[str], rest: str) -> None:
        if words[1] not in LOOKS:
            raise ValueError(f"unknown look {words[1]!r}, use one of: {', '.join(LOOKS)}")
        script = parse_script(self._indented(), self.world)
        self._add(Thing("person", parse_cell(words[0]), number, look=words[1], script=script))

    def _on_enemy(self, number: int, words: list[str], rest: str) -> None:
        if words[1] not in ENEMIES:
            raise ValueError(f"unknown enemy {words[1]!r}, use one of: {', '.join(ENEMIES)}")
        self._add(Thing("enemy", parse_cell(words[0]), number, enemy=words[1]))

    def _treasure(self, kind: str, number: int, words: list[str]) -> Thing:
        hidden = words[-1] == "hidden"
        name, arguments = words[1], words[2 : len(words) - hidden]
        amount = parse_amount(name, arguments, self.world)
        steps = give_steps(name, amount, self.world.trades, number, kind == "chest")
        extra = parse_script(self._indented(), self.world)
        if any(branch.tests for branch in extra):
            raise ValueError("a treasure is for everybody: no `if` below it")
        script = (Branch((), steps + tuple(step for branch in extra for step in branch.steps)),)
        thing = Thing("chest" if kind == "chest" else "treasure", parse_cell(words[0]), number, script=script)
        return replace(thing, treasure=name, amount=amount, hidden=hidden)

    def _on_treasure(self, number: int, words: list[str], rest: str) -> None:
        self._add(self._treasure("treasure", number, words))

    def _on_chest(self, number: int, words: list[str], rest: str) -> None:
        self._add(self._treasure("chest", number, words))

    def _on_sign(self, number: int, words: list[str], rest: str) -> None:
        self._add(Thing("sign", parse_cell(words[0]), number, script=parse_script(self._indented(), self.world)))

    def _on_warp(self, number: int, words: list[str], rest: str) -> None:
        if len(words) != 5 or words[1] != "to":
            raise ValueError("write `warp X,Y to GROUP:ROOM X,Y DIRECTION`")
        cell, _, target, arrival, facing = words
        thing = Thing("warp", parse_cell(cell), number, target=parse_place(target), arrival=parse_cell(arrival))
        self._add(replace(thing, facing=parse_direction(facing)))

    def _on_enter(self, number: int, words: list[str], rest: str) -> None:
        self._add(Thing("enter", (0, 0), number, script=parse_script(self._indented(), self.world)))


def parse_world(name: str, text: str) -> World:
    """The world in a text. Raise WorldError with file and line for the first mistake."""
    return _Reader(name, text).read()


def read_world(name: str) -> World:
    """The world in worlds/NAME.txt, or made by a seed for `wild:SEED`. WorldError when there is none, or a mistake."""
    if name.startswith("wild:"):
        from bramble.wild import wild_text  # it reads its own drafts by this module

        return parse_world(name, wild_text(_seed(name)))
    path = WORLDS / f"{name}.txt"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in WORLDS.glob("*.txt")))
        raise WorldError(f"there is no world {name!r}: use one of {known}, or wild:SEED")
    return parse_world(name, path.read_text("utf-8"))


def _seed(name: str) -> int:
    digits = name.removeprefix("wild:")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise WorldError(f"there is no world {name!r}: write wild:SEED with a number of up to nine digits, e.g. wild:7")
    return int(digits)
