"""One-room worlds that show a single item or rule of the engine in the emulator."""

from collections.abc import Callable, Iterator

import pytest

from bramble.emulator import BrambleEmulator
from bramble.worlds.rom_builder import build_rom
from bramble.worlds.world_parser import parse_world

CLOSED = "##########"
OPEN = "#........#"


def one_room(rows: dict[int, str], objects: str, theme: str = "outdoors", solve: str = "", head: str = "") -> str:
    """A world of one closed room; `rows` replaces rows by number. The hero starts at 4,4."""
    lines = [CLOSED, *[OPEN] * 6, CLOSED]
    for number, row in rows.items():
        lines[number] = row
    place = "4:11" if theme.startswith("dungeon") else "0:11"
    extra = f" solve {solve}" if solve else ""
    return "\n".join([f"world Test\nstart {place} 4,4 down", head, f"room {place} {theme}{extra}", *lines, objects, ""])


@pytest.fixture
def play() -> Iterator[Callable[..., BrambleEmulator]]:
    """Start a game from the text of a world."""
    games: list[BrambleEmulator] = []

    def start(text: str, difficulty: str = "normal", torn: bool = False) -> BrambleEmulator:
        game = BrambleEmulator(build_rom(parse_world("test", text), difficulty, seed=3, torn=torn))
        games.append(game)
        return game

    yield start
    for game in games:
        game.close()


def hold(game: BrambleEmulator, action: str, steps: int) -> None:
    """Hold a button for some steps."""
    for _ in range(steps):
        game.step(action)


def tap(game: BrambleEmulator, action: str, rest: int = 3) -> None:
    """Press a button for one step, then wait."""
    game.step(action)
    hold(game, "nop", rest)


def read_on(game: BrambleEmulator) -> str:
    """Read a dialog to its end. Returns the lines in RAM, joined by blanks."""
    lines: list[str] = []
    for _ in range(400):
        if not game.value("text_active"):
            break
        raw = bytes(game.read(0xD400 + at, 7) for at in range(16))
        line = raw.rstrip(b"\0").decode("ascii")
        if line and lines and line.startswith(lines[-1]):
            lines[-1] = line
        elif line:
            lines.append(line)
        waiting = game.read(0xD0C0, 7) in (5, 15)
        game.step("a" if waiting and game.held != "a" else "nop")
    return " ".join(lines)
