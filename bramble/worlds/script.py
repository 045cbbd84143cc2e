"""Encodes scripts of people, signs, chests and rooms as bytes for engine/script.c.

A script is a list of branches. The first branch whose conditions hold runs, and then the script ends.
"""

from collections.abc import Callable

from bramble.worlds.model import SEASONS, SOLVED, TRADE, TREASURES, Branch, Script, ScriptCondition, Statement

# The order is the numbering in engine/script.c.
OPERATIONS = (
    "end", "say", "ask", "give", "take", "pay", "set", "clear", "solve", "mark", "season", "hold", "sound", "warp",
    "if",
)  # fmt: skip
CONDITIONS = ("owns", "flag", "room", "rupees", "essences", "season", "trade")
NOT = 0x80
MAX_SCRIPT = 250
"""Bytes; a false `if` can skip at most 255."""
COUNTED = frozenset({"rupees", "heart", "bombs", "essence"})
"""Treasures with an amount after the name; the amount of an essence is its number. The engine gives keys one by one."""

LINE = 16
LINES_PER_PAGE = 3
ANSWERS = " Yes    No"
GOT = {
    "bombs": "You got bombs!|They open cracked walls.",
    "sword": "You got the sword! It cuts brambles and beats monsters.",
    "rod": "You got the power of the season rod! Use it on a stump.",
    "bracelet": "You got the bracelet! Now you can lift rocks.",
    "feather": "You got the feather! You can jump over holes.",
    "heart": "Your hearts are full of cheer!",
    "heart_container": "A new heart!",
    "heart_piece": "A piece of a heart! Four make a new one.",
    "flippers": "You got the flippers! Deep water is no bar to you now.",
    "small_key": "A small key! It opens one locked door.",
    "boss_key": "The great key! It opens the lord's door.",
    "compass": "You got the compass!",
    "map": "You got the map!",
    "essence": "You hold an ember of the seasons!",
}


def wrap(text: str, lines: int = LINES_PER_PAGE) -> list[list[str]]:
    """Break a text into pages of lines. `|` starts a line, `||` a page. Raise ValueError for a word too long."""
    pages: list[list[str]] = []
    for part in text.split("||"):
        flow = [line for piece in part.split("|") for line in _wrap_line(piece)]
        pages += [flow[at : at + lines] for at in range(0, len(flow), lines)]
    return pages


def _wrap_line(text: str) -> list[str]:
    out = [""]
    for word in text.split():
        if len(word) > LINE:
            raise ValueError(f"the word {word!r} has more than {LINE} letters, the width of the dialog box")
        if len(out[-1]) + 1 + len(word) > LINE and out[-1]:
            out.append(word)
        else:
            out[-1] = f"{out[-1]} {word}".strip()
    return out


def encode_text(text: str, ask: bool = False) -> bytes:
    """A text as the engine prints it, terminated by 0. A question gets a line with both answers."""
    pages = wrap(text)
    if ask:
        if len(pages[-1]) == LINES_PER_PAGE:
            pages.append([])
        pages[-1].append(ANSWERS)
    return "\f".join("\n".join(page) for page in pages).encode("ascii") + b"\0"


def treasure_id(name: str, trades: dict[str, tuple[int, str]]) -> int:
    """Number of a treasure by name; all trade goods share one number. Raise KeyError for an unknown name."""
    return TRADE if name in trades else TREASURES[name]


def got_text(name: str, trades: dict[str, tuple[int, str]]) -> str:
    """The text that the game shows when the hero gets a treasure."""
    return trades[name][1] if name in trades else GOT[name]


def give_statements(
    name: str, amount: int, trades: dict[str, tuple[int, str]], line: int, from_chest: bool = False
) -> tuple[Statement, ...]:
    """Statements that give a treasure and show its text; rupees and hearts show a text only from a chest."""
    number = treasure_id(name, trades)
    if name in trades:
        amount = trades[name][0]
    give = Statement("give", (number, amount), line=line)
    if name in ("rupees", "heart") and not from_chest:
        return (give,)
    text = f"You found {amount} gems!" if name == "rupees" else got_text(name, trades)
    return (Statement("hold", (number,), line=line), give, Statement("say", text=text, line=line))


def bcd(number: int) -> int:
    """Two decimal digits in one byte."""
    return number // 10 << 4 | number % 10


def encode_condition(condition: ScriptCondition) -> bytes:
    """Condition and argument, as in REC_IF and OP_IF."""
    kind, value = ("room", SOLVED) if condition.kind == "solved" else (condition.kind, condition.value)
    if kind == "rupees":
        value = bcd(value)
    return bytes([CONDITIONS.index(kind) | (NOT if condition.negated else 0), value])


def _encode_statement(statement: Statement, text_number: Callable[[str, bool], int]) -> bytes:
    code = OPERATIONS.index(statement.word)
    if statement.word in ("say", "ask"):
        return bytes([code, text_number(statement.text, statement.word == "ask")])
    values = tuple(bcd(value) for value in statement.values) if statement.word == "pay" else statement.values
    return bytes([code, *values])


def _encode_branch(branch: Branch, text_number: Callable[[str, bool], int]) -> bytes:
    out = b"".join(_encode_statement(statement, text_number) for statement in branch.statements) + bytes(
        [OPERATIONS.index("end")]
    )
    for condition in reversed(branch.conditions):
        _check_length(out)
        out = bytes([OPERATIONS.index("if"), *encode_condition(condition), len(out)]) + out
    return out


def _check_length(script: bytes) -> None:
    if len(script) > MAX_SCRIPT:
        raise ValueError(f"the script is longer than {MAX_SCRIPT} bytes: split it between two people")


def encode_script(script: Script, text_number: Callable[[str, bool], int]) -> bytes:
    """Bytes of a script; `text_number(text, is a question)` numbers a text. Raise ValueError when too long."""
    out = b"".join(_encode_branch(branch, text_number) for branch in script)
    _check_length(out)
    return out + bytes([OPERATIONS.index("end")])


def season_mask(names: list[str]) -> int:
    """Bits of seasons. Raise ValueError for an unknown season."""
    for name in names:
        if name not in SEASONS:
            raise ValueError(f"unknown season {name!r}, use: {', '.join(SEASONS)}")
    return sum(1 << SEASONS.index(name) for name in names)
