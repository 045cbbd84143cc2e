"""Loads pictures, letters and colours of Bramble from the text files beside it.

The engine uses some of them by name; `header()` gives these names as the C header engine/art.h.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

ART = Path(__file__).parent
SHADES = {".": 0, "-": 1, "+": 2, "#": 3}
PALETTES = ("ground", "flower", "water", "wood", "stone", "roof", "gold", "text")
THEMES = ("spring", "summer", "autumn", "winter", "house", "cave", "dungeon1", "dungeon2", "dungeon3")
SPRITE_PALETTES = ("hero", "person", "red", "green", "steel", "gold", "blue", "plum")
SOLID = {"no": 0x00, "full": 0x0F, "hazard": 0x10}
GROUND = {"plain": 0, "hole": 1, "stairs": 6, "water": 7}
ACTS = ("none", "cut", "lift", "bomb", "key", "boss_key", "shutter", "push", "button", "heavy", "stump", "chest")
ENGINE_TILES = ("chest", "chest_open", "stump", "pot", "block", "block_down")
FIRST_LETTER = 32
FIRST_ICON = 96
TILE_BANK_1 = 0x08
MAX_PICTURES = 64
"""256 tiles of 8 x 8 in one bank of video memory."""
MAX_NUMBERS = 96
"""Higher numbers stand for pairs in packed rooms."""

Rows = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A metatile. `ids` holds one id, or four: for the upper, right, lower and left edge of a room."""

    letter: str
    name: str
    ids: tuple[int, ...]
    palette: int
    solid: int
    ground: int
    act: int
    becomes: str
    rows: Rows


@dataclass(frozen=True, slots=True)
class Art:
    """All art: tiles in file order, numbers of sprites and icons by name, and bytes for the engine."""

    tiles: tuple[Tile, ...]
    sprites: dict[str, int]
    icons: dict[str, int]
    sprite_bytes: bytes
    font_bytes: bytes
    theme_bytes: bytes
    sprite_palette_bytes: bytes
    letters: frozenset[str]
    numbers: dict[int, int] = field(default_factory=dict)
    by_letter: dict[str, Tile] = field(default_factory=dict)
    by_name: dict[str, Tile] = field(default_factory=dict)


def _blocks(path: Path) -> Iterator[tuple[int, list[str], Rows]]:
    """Yield (line number, words of the head line, rows of the picture) for each block of an art file."""
    head: list[str] = []
    rows: list[str] = []
    start = 0
    lines = path.read_text("utf-8").splitlines()
    for number, line in enumerate([*lines, ""], start=1):
        if not head and (not line.strip() or line.startswith("#")):
            continue
        if not line.strip():
            yield start, head, tuple(rows)
            head, rows = [], []
        elif not head:
            start, head = number, line.split()
        else:
            rows.append(line)


def _picture(path: Path, line: int, rows: Rows, width: int, height: int) -> Rows:
    if len(rows) != height or any(len(row) != width or set(row) - set(SHADES) for row in rows):
        raise ValueError(f"{path.name} line {line}: draw {height} rows of {width} letters from .-+#")
    return rows


def tile_bytes(rows: Rows) -> bytes:
    """Rows of 8 pixels in the Game Boy's tile format: two bytes per row, low bits first."""
    out = bytearray()
    for row in rows:
        shades = [SHADES[letter] for letter in row]
        out.append(sum((shade & 1) << (7 - x) for x, shade in enumerate(shades)))
        out.append(sum((shade >> 1) << (7 - x) for x, shade in enumerate(shades)))
    return bytes(out)


def metatile_bytes(rows: Rows) -> bytes:
    """16 x 16 pixels as four tiles: upper left, upper right, lower left, lower right."""
    return b"".join(tile_bytes(tuple(row[x : x + 8] for row in rows[y : y + 8])) for y in (0, 8) for x in (0, 8))


def _wide_bytes(rows: Rows) -> bytes:
    return b"".join(tile_bytes(tuple(row[x : x + 8] for row in rows)) for x in (0, 8))


def _tile(path: Path, line: int, head: list[str], rows: Rows) -> Tile:
    options = {"solid": "no", "ground": "plain", "act": "none", "becomes": ""}
    options.update(dict(word.split("=", 1) for word in head[3:]))
    ids = options.get("sides", options["id"]).split(",")
    return Tile(
        letter=head[1],
        name=head[2],
        ids=tuple(int(value, 16) for value in ids),
        palette=PALETTES.index(options["palette"]),
        solid=SOLID[options["solid"]],
        ground=GROUND[options["ground"]],
        act=ACTS.index(options["act"]),
        becomes=options["becomes"],
        rows=_picture(path, line, rows, 16, 16),
    )


def _tiles() -> tuple[Tile, ...]:
    path = ART / "tiles.txt"
    tiles: list[Tile] = []
    taken: set[object] = set()
    for line, head, rows in _blocks(path):
        tile = _tile(path, line, head, rows)
        own = {tile.name, *tile.ids} | ({(tile.letter,)} if tile.letter != "-" else set())
        if own & taken:
            raise ValueError(f"{path.name} line {line}: another tile has the letter, the name or an id of {tile.name}")
        taken |= own
        tiles.append(tile)
    return tuple(tiles)


def _sprites() -> tuple[dict[str, int], bytes]:
    path = ART / "sprites.txt"
    numbers: dict[str, int] = {}
    out = bytearray()
    for line, (kind, name), rows in _blocks(path):
        numbers[name] = len(out) // 16
        if kind == "wide":
            out += _wide_bytes(_picture(path, line, rows, 16, 16))
        else:
            out += tile_bytes(_picture(path, line, rows, 8, 16))
    return numbers, bytes(out)


def _font() -> tuple[dict[str, int], frozenset[str], bytes]:
    path = ART / "font.txt"
    out = bytearray(128 * 16)
    icons: dict[str, int] = {}
    letters = set()
    for line, head, rows in _blocks(path):
        if head[0] == "letter":
            letters.add(chr(int(head[1])))
            slot = int(head[1]) - FIRST_LETTER
        else:
            slot = FIRST_ICON + len(icons)
            icons[head[1]] = slot
        out[slot * 16 : slot * 16 + 16] = tile_bytes(_picture(path, line, rows, 8, 8))
    return icons, frozenset(letters), bytes(out)


def _colour(text: str) -> bytes:
    red, green, blue = (int(value) >> 3 for value in text.split(","))
    return (red | green << 5 | blue << 10).to_bytes(2, "little")


def _colours() -> tuple[bytes, bytes]:
    """Bytes of all themes, in the order of THEMES, and of the sprite palettes."""
    found: dict[tuple[str, str], bytes] = {}
    theme = ""
    for line in (ART / "palettes.txt").read_text("utf-8").splitlines():
        words = line.split()
        if not words or words[0] == "#":
            continue
        if words[0] in ("theme", "sprites"):
            theme = words[-1]
            continue
        found[theme, words[0]] = b"".join(_colour(word) for word in words[1:])
    text = found["", "text"]
    themes = b"".join(
        found[theme, name]
        for theme in THEMES
        for name in (*PALETTES[:-1], "text")
        if name != "text" or found.setdefault((theme, name), text)
    )
    return themes, b"".join(b"\0\0" + found["sprites", name] for name in SPRITE_PALETTES)


@lru_cache(maxsize=1)
def load_art() -> Art:
    """Read all art files once. Raise ValueError with file and line of a wrong picture."""
    sprites, sprite_bytes = _sprites()
    icons, letters, font_bytes = _font()
    themes, sprite_palettes = _colours()
    tiles = _tiles()
    ids = [value for tile in tiles for value in tile.ids]
    return Art(
        tiles=tiles,
        sprites=sprites,
        icons=icons,
        sprite_bytes=sprite_bytes,
        font_bytes=font_bytes,
        theme_bytes=themes,
        sprite_palette_bytes=sprite_palettes,
        letters=letters,
        numbers={value: number for number, value in enumerate(ids)},
        by_letter={tile.letter: tile for tile in tiles if tile.letter != "-"},
        by_name={tile.name: tile for tile in tiles},
    )


def tile_tables(art: Art) -> dict[str, bytes]:
    """The tile tables that the engine reads: by metatile number, and from id to number."""
    if len(art.numbers) > MAX_NUMBERS or len(art.tiles) > MAX_PICTURES:
        raise ValueError(f"tiles.txt: at most {MAX_PICTURES} pictures and {MAX_NUMBERS} ids fit")
    entries = [(value, tile, picture) for picture, tile in enumerate(art.tiles) for value in tile.ids]
    of_id = bytearray(256)
    for number, (value, _, _) in enumerate(entries):
        of_id[value] = number
    becomes = [
        art.numbers[art.by_name[tile.becomes].ids[0]] if tile.becomes else n for n, (_, tile, _) in enumerate(entries)
    ]
    return {
        "tile_of_id": bytes(of_id),
        "tile_id": bytes(value for value, _, _ in entries),
        "tile_gfx": bytes(picture for _, _, picture in entries),
        "tile_attr": bytes(tile.palette | TILE_BANK_1 for _, tile, _ in entries),
        "tile_solid": bytes(tile.solid for _, tile, _ in entries),
        "tile_ground": bytes(tile.ground for _, tile, _ in entries),
        "tile_act": bytes(tile.act for _, tile, _ in entries),
        "tile_becomes": bytes(becomes),
        "pictures": b"".join(metatile_bytes(tile.rows) for tile in art.tiles),
    }


def header(art: Art) -> str:
    """The C header with the names that the engine uses."""
    lines = ["/* Generated from bramble/art by `python -m bramble engine`: do not edit. */", "#pragma once"]
    lines += [f"#define TILE_{name.upper()} 0x{art.by_name[name].ids[0]:02X}" for name in ENGINE_TILES]
    lines += [f"#define ICON_SPACE 0\n#define ICON_ZERO {ord('0') - FIRST_LETTER}"]
    lines += [f"#define ICON_{name.upper()} {number}" for name, number in art.icons.items()]
    lines += [f"#define SPRITE_{name.upper()} {number}" for name, number in art.sprites.items()]
    return "\n".join(lines) + "\n"
