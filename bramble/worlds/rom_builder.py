"""Builds a ROM (32 KiB) from a World and the compiled engine: in milliseconds, without a compiler.

Layout of the ROM: the engine's program, the world's data, and in the last 128 bytes the header that the engine reads
(struct World in engine/game.h).
"""

from collections.abc import Iterable
from functools import lru_cache

from bramble.art.loader import Art, load_art, tile_tables
from bramble.engine.compile import ENGINE, PROGRAM_END
from bramble.worlds.model import (
    DIFFICULTIES,
    DIRECTIONS,
    ENEMIES,
    ITEM,
    LOOKS,
    SEASONS,
    SECOND_ITEM,
    SOLVES,
    THEMES,
    Cell,
    Room,
    RoomObject,
    World,
    WorldError,
)
from bramble.worlds.pack import FIRST_LETTER_PAIR, FIRST_TILE_PAIR, pack_bytes, pack_pairs
from bramble.worlds.script import encode_condition, encode_script, encode_text, season_mask, treasure_id

HEAD = 0x7F80
GLOBAL_CHECKSUM = 0x014E
PICTURES_LOW = 32 * 64
# Records of a room, in the order of game.h.
PERSON, ENEMY, TREASURE, CHEST, SIGN, WARP, SEASON, IF, ENTER = range(1, 10)
HIDDEN = 0x01
LAST_TEXT = 255


def _cell_byte(cell: Cell) -> int:
    column, row = cell
    return row << 4 | column


def _address_bytes(value: int) -> bytes:
    """A 16-bit address. `_finish` refuses a world that needs more, so higher bits may be cut."""
    return (value & 0xFFFF).to_bytes(2, "little")


class _DataSection:
    """The bytes after the program, with the address of each piece."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.bytes = bytearray()
        self.known: dict[bytes, int] = {}

    def add(self, piece: bytes) -> int:
        """Append a piece and return its address. Equal pieces share one address."""
        if piece not in self.known:
            self.known[piece] = self.first + len(self.bytes)
            self.bytes += piece
        return self.known[piece]


class _TextTable:
    """The texts of a world, numbered in order of first use."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}

    def number(self, text: str, ask: bool) -> int:
        number = self.numbers.setdefault(encode_text(text, ask), len(self.numbers))
        if number > LAST_TEXT:
            raise ValueError(f"the world has more than {LAST_TEXT + 1} texts")
        return number


@lru_cache(maxsize=1)
def _art_pieces() -> tuple[Art, dict[str, bytes]]:
    """The art and its bytes for the engine, with packed pictures."""
    art = load_art()
    tables = tile_tables(art)
    pictures = tables.pop("pictures")
    pieces = {
        **tables,
        "pictures_low": pack_bytes(pictures[:PICTURES_LOW]),
        "pictures_high": pack_bytes(pictures[PICTURES_LOW:]),
        "font": pack_bytes(art.font_bytes),
        "sprites": pack_bytes(art.sprite_bytes),
        "themes": art.theme_bytes,
        "sprite_palettes": art.sprite_palette_bytes,
    }
    return art, pieces


def edge_of(cell: Cell) -> int:
    """Index of the edge at this cell: 0 upper, 1 right, 2 lower, 3 left; 0 inside the room."""
    column, row = cell
    if row == 0:
        return 0
    if column == 9:
        return 1
    if row == 7:
        return 2
    return 3 if column == 0 else 0


def tile_number(art: Art, letter: str, cell: Cell) -> int:
    """Number of the metatile for a map letter at a cell."""
    ids = art.by_letter[letter].ids
    return art.numbers[ids[edge_of(cell)] if len(ids) > 1 else ids[0]]


def _season_records(art: Art, room: Room) -> Iterable[bytes]:
    for names, overlay in room.seasons:
        cells = [(x, y, letter) for y, row in enumerate(overlay) for x, letter in enumerate(row) if letter != "-"]
        body = b"".join(bytes([_cell_byte((x, y)), tile_number(art, letter, (x, y))]) for x, y, letter in cells)
        yield bytes([SEASON, season_mask(sorted(names)), len(cells)]) + body


class _RoomEncoder:
    """Encodes rooms as bytes."""

    def __init__(self, world: World, art: Art, data: _DataSection) -> None:
        self.world = world
        self.art = art
        self.data = data
        self.texts = _TextTable()

    def _script(self, obj: RoomObject) -> bytes:
        """Address of the object's script."""
        try:
            return _address_bytes(self.data.add(encode_script(obj.script, self.texts.number)))
        except ValueError as error:
            raise WorldError(f"{self.world.where(obj.line)}: {error}") from error

    def _record(self, obj: RoomObject, flag: int) -> bytes:
        pos = _cell_byte(obj.cell)
        flag |= HIDDEN if obj.hidden else 0
        if obj.kind == "person":
            return bytes([PERSON, pos, LOOKS.index(obj.look)]) + self._script(obj)
        if obj.kind == "enemy":
            return bytes([ENEMY, pos, ENEMIES[obj.enemy]])
        if obj.kind == "treasure":
            return bytes([TREASURE, pos, treasure_id(obj.treasure, self.world.trades), flag]) + self._script(obj)
        if obj.kind == "chest":
            return bytes([CHEST, pos, flag]) + self._script(obj)
        if obj.kind == "sign":
            return bytes([SIGN, pos]) + self._script(obj)
        if obj.kind == "enter":
            return bytes([ENTER]) + self._script(obj)
        if obj.target is None:
            raise WorldError(f"{self.world.where(obj.line)}: a warp without target")
        target = (obj.target.group, obj.target.room, _cell_byte(obj.arrival), DIRECTIONS.index(obj.facing))
        return bytes([WARP, pos, *target])

    def cells(self, room: Room) -> bytes:
        """Numbers of the 80 metatiles of a room."""
        return bytes(
            tile_number(self.art, letter, (x, y)) for y, row in enumerate(room.rows) for x, letter in enumerate(row)
        )

    def records(self, room: Room) -> bytes:
        """Records of a room (seasons, then objects), terminated by 0."""
        flags = iter((ITEM, SECOND_ITEM))
        out = bytearray(b"".join(_season_records(self.art, room)))
        for obj in room.objects:
            flag = next(flags) if obj.kind in ("treasure", "chest") else 0
            for condition in obj.only:
                out += bytes([IF]) + encode_condition(condition)
            out += self._record(obj, flag)
        return bytes(out) + b"\0"


def _world_header(world: World, pointers: Iterable[int], difficulty: str, seed: int, torn: bool) -> bytes:
    start = bytes(
        [world.start.group, world.start.room, _cell_byte(world.start_cell), DIRECTIONS.index(world.start_facing)]
    )
    numbers = bytes([SEASONS.index(world.season), world.health, DIFFICULTIES.index(difficulty)])
    return b"BRMB" + b"".join(map(_address_bytes, pointers)) + start + numbers + _address_bytes(seed) + bytes([torn])


def build_rom(world: World, difficulty: str = "normal", seed: int = 0, torn: bool = False) -> bytes:
    """The ROM of a world.

    `difficulty` is harmless, normal or harsh. `seed` (16 bits) starts the game's random generator. `torn` makes the
    engine update RAM while the screen is drawn, as commercial games do, to test readers of RAM. Raise WorldError.
    """
    if difficulty not in DIFFICULTIES:
        raise WorldError(f"unknown difficulty {difficulty!r}, use one of: {', '.join(DIFFICULTIES)}")
    rom = bytearray((ENGINE / "engine.gbc").read_bytes())
    first = int.from_bytes(rom[PROGRAM_END : PROGRAM_END + 2], "little")
    data, pointers = _lay_out(world, first, packed=False)
    if first + len(data.bytes) > HEAD:
        data, pointers = _lay_out(world, first, packed=True)
    return _finish(rom, data, _world_header(world, pointers, difficulty, seed, torn), world)


def _lay_out(world: World, first: int, packed: bool) -> tuple[_DataSection, list[int]]:
    """The world's data and the pointers to it, in header order. Only big worlds are packed, because packing is slow."""
    art, pieces = _art_pieces()
    data = _DataSection(first)
    places = {name: data.add(piece) for name, piece in pieces.items()}
    encoder = _RoomEncoder(world, art, data)
    rooms = sorted(world.rooms.items())
    cells, tile_pairs = _maybe_packed(tuple(encoder.cells(room) for _, room in rooms), FIRST_TILE_PAIR, packed)
    entries = b""
    for (room_id, room), body in zip(rooms, cells, strict=True):
        kind = bytes([THEMES.index(room.theme) | SOLVES.index(room.solve) << 4])
        entries += bytes([room_id.group, room_id.room]) + _address_bytes(data.add(kind + body + encoder.records(room)))
    texts, text_pairs = _maybe_packed(tuple(encoder.texts.numbers), FIRST_LETTER_PAIR, packed)
    order = ("tile_of_id", "tile_id", "tile_gfx", "tile_attr", "tile_solid", "tile_ground", "tile_act", "tile_becomes")
    graphics = ("pictures_low", "pictures_high", "font", "sprites", "themes", "sprite_palettes")
    pointers = [
        data.add(entries + b"\xff\xff\0\0"),
        data.add(b"".join(_address_bytes(data.add(text)) for text in texts)),
    ]
    pointers += [places[name] for name in order] + [data.add(tile_pairs), data.add(text_pairs)]
    return data, pointers + [places[name] for name in graphics]


def _maybe_packed(lines: tuple[bytes, ...], first_pair: int, packed: bool) -> tuple[tuple[bytes, ...], bytes]:
    return pack_pairs(lines, first_pair) if packed else (lines, b"")


def _finish(rom: bytearray, data: _DataSection, head: bytes, world: World) -> bytes:
    room_left = HEAD - data.first - len(data.bytes)
    if room_left < 0:
        raise WorldError(f"{world.file}: the world is {-room_left} bytes too big for the cartridge")
    rom[data.first :] = data.bytes + b"\xff" * room_left + head + b"\xff" * (len(rom) - HEAD - len(head))
    rom[GLOBAL_CHECKSUM : GLOBAL_CHECKSUM + 2] = b"\0\0"
    rom[GLOBAL_CHECKSUM : GLOBAL_CHECKSUM + 2] = (sum(rom) & 0xFFFF).to_bytes(2, "big")
    return bytes(rom)
