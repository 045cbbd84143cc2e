"""Each mistake in a world gives one sentence with file and line."""

import random

import pytest

from bramble.worlds.check import check_world
from bramble.worlds.milestones import reached
from bramble.worlds.model import WorldError
from bramble.worlds.pack import FIRST_LETTER_PAIR, pack_bytes, pack_pairs
from bramble.worlds.rom_builder import build_rom
from bramble.worlds.script import encode_text, wrap
from bramble.worlds.world_parser import parse_world
from shared.game.ram.table import load_table

ROOM = "##########\n" + "#........#\n" * 6 + "##########\n"
OPEN_RIGHT = ROOM.replace("#........#\n", "#.........\n", 1)
OPEN_LEFT = ROOM.replace("#........#\n", ".........#\n", 1)
START = "world Test\nstart 0:11 4,4 down\n"
HOUSE = f"room 3:01 house\n{ROOM}"
SCROLLED = f"{START}room 0:11 outdoors\n{OPEN_RIGHT}room 0:12 outdoors\n{OPEN_LEFT}"
HERE = f"{START}room 0:11 outdoors\n{ROOM}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (START + "room 0:11 outdoors\n" + OPEN_RIGHT, "line 3: room 0:11 is open .* there is no room"),
        (START + f"room 0:11 outdoors\n{OPEN_RIGHT}room 0:12 outdoors\n{ROOM}", "line 3: .* room 0:12 is closed there"),
        (START + f"room 0:11 outdoors\n{ROOM}room 0:22 outdoors\n{ROOM}", "line 12: room 0:22 cannot be reached"),
        (HERE + "warp 4,4 to 3:01 4,4 up\n", "line 12: .* room 3:01, which does not exist"),
        (HERE + "warp 4,4 to 3:01 4,4 up\n" + HOUSE, "line 12: .* no warp leads back"),
        (HERE + "person 4,4 elder\n  say Supercalifragilistic words\n", "line 13: the word 'Super.* 16 letters"),
        (HERE + "person 4,4 wizard\n", "line 12: unknown look 'wizard', use one of: elder"),
        (HERE + "person 0,4 elder\n", "line 12: the person stands on tree, which is solid"),
        (HERE + "chest 4,4 hammer\n", "line 12: unknown treasure 'hammer'"),
        (HERE + "chest 4,4 small_key 2\n", "line 12: small_key has no amount: remove '2'"),
        (HERE + "enemy 12,4 walker\n", "line 12: the cell 12,4 lies outside"),
        (START + "room 0:11 outdoors\n" + ROOM.replace("........", "....@...", 1), "line 5: unknown tile '@'"),
        (START + "room 0:11 outdoors\n" + ROOM.replace("........", ".......", 1), "line 5: 9 letters instead of 10"),
        (START + f"room 0:11 outdoors solve cleared\n{ROOM}", "solved by clearing it, but has no enemy"),
        (START + f"milestone m Title: owns hammer\nroom 0:11 outdoors\n{ROOM}", "line 3: unknown name 'hammer'"),
        (START + f"room 0:1ff outdoors\n{ROOM}", "line 3: there is no room 0:1ff: groups are 0, 3, 4, 5, rooms 00"),
        (START + f"room 6:11 outdoors\n{ROOM}", "line 3: there is no room 6:11: groups are"),
        (HERE + "person 4,4 elder\n  say Well.\n  if flag lost\n    say No.\n", "line 14: unknown flag 'lost'"),
        (HERE + "person 4,4\n", "line 12: an argument is missing, see bramble/README.md"),
        (HERE + "person 4,4 elder\n  if owns\n    say No.\n", "line 13: an argument is missing"),
        (HERE + "warp 4,4 to 3:01\n", "line 12: write `warp X,Y to GROUP:ROOM X,Y DIRECTION`"),
        (HERE + "only owns sword\n" + HOUSE + "person 4,4 elder\n", "line 12: `only` applies to the next line, which"),
        (HERE + "only owns sword\nonly owns map\nperson 4,4 elder\n", "line 12: `only` applies to the next line"),
        (HERE + "only owns sword\n", "line 12: `only` applies to the next line"),
        (START + f"room 0:11 outdoors sovle cleared\n{ROOM}", "line 3: write `room GROUP:ROOM THEME"),
        (START + f"room 0:11 outdoors solve\n{ROOM}", "line 3: write `room GROUP:ROOM THEME"),
        (HERE + "person 4,4 elder\n  say Hup!\n  warp 0:44 4,4 down\n", "line 14: the script warps to room 0:44"),
        (HERE + "person 4,4 elder\n  warp 0:11 0,4 down\n", r"line 13: the script warps into a wall, at \(0, 4\) of"),
        (SCROLLED + "enter\n  season winter\n", "line 22: the script of `enter` has `season`, and the hero"),
        (HERE + "treasure 4,4 essence 9\n", "line 12: there is no essence 9: they are numbered 1 to 8"),
        (HERE + "person 4,4 elder\n  give essence 9\n", "line 13: there is no essence 9"),
        (f"{START}milestone m Far: visited 0:99\n{HERE[len(START) :]}", "line 3: the world has no room 0:99"),
        (f"{START}milestone m Keys: keys 1\n{HERE[len(START) :]}", "line 3: unknown condition 'keys'"),
        (START + "milestone m A: owns map\nmilestone m B: owns map\n", "line 4: a second milestone 'm'"),
        (HERE + "person 4,4 elder\n  say Well.|It is 5$.\n", r"line 13: the letter '\$' is not drawn in art"),
        (START + "flag paid met paid won\n", "line 3: a second flag 'paid'"),
        (START + "trade pie: A pie!\ntrade pie: A pie!\n", "line 4: there is a treasure 'pie' already"),
        (START + "trade sword: A sword!\n", "line 3: there is a treasure 'sword' already"),
        (START + "rom 0:11\n", "line 3: unknown word 'rom'"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_file_and_line(text: str, sentence: str) -> None:
    with pytest.raises(WorldError, match=f"^test.txt {sentence}|^test.txt line 3: .*{sentence}"):
        check_world(parse_world("test", text))


def test_a_start_inside_a_wall_is_refused() -> None:
    with pytest.raises(WorldError, match=r"^test.txt: the world starts in a wall, at \(0, 4\) of room 0:11"):
        check_world(parse_world("test", HERE.replace("4,4", "0,4")))


@pytest.mark.parametrize("condition", ["", "  if owns sword\n", "  if owns sword and owns map and owns compass\n"])
@pytest.mark.parametrize("steps", [124, 140])
def test_a_too_long_script_is_refused(condition: str, steps: int) -> None:
    text = f"{HERE}person 4,4 elder\n{condition}" + "    pay 1\n" * (steps + (not condition))
    with pytest.raises(WorldError, match=r"^test\.txt line 12: the script is longer than 250 bytes: split it"):
        build_rom(parse_world("test", text))


def test_a_text_wraps_at_16_letters_and_3_lines_per_page() -> None:
    assert wrap("one two three four five|six||seven") == [["one two three", "four five", "six"], ["seven"]]
    assert encode_text("Well?", ask=True) == b"Well?\n Yes    No\0"


def test_packed_bytes_unpack_as_the_engine_does() -> None:
    data = bytes(range(64)) * 3 + b"\0" * 100 + bytes(range(200, 256))
    packed = pack_bytes(data)
    out = bytearray()
    at, control, pieces = 0, 0, 0
    while True:
        if not pieces:
            control, pieces, at = packed[at], 8, at + 1
        if control & 1:
            out.append(packed[at])
            at += 1
        else:
            low, high = packed[at], packed[at + 1]
            at += 2
            if not low and not high:
                break
            for _ in range((high >> 4) + 3):
                out.append(out[-(low | (high & 15) << 8)])
        control, pieces = control >> 1, pieces - 1

    assert bytes(out) == data
    assert len(packed) < len(data) / 2


def test_packed_texts_unpack_to_themselves() -> None:
    texts = tuple(f"the wind and the rain, number {n}\0".encode() for n in range(20))
    packed, pairs = pack_pairs(texts, FIRST_LETTER_PAIR)

    def unpack(value: int) -> bytes:
        if value < 128:
            return bytes([value])
        at = (value - 128) * 2
        return unpack(pairs[at]) + unpack(pairs[at + 1])

    assert tuple(b"".join(unpack(value) for value in text) for text in packed) == texts
    assert sum(map(len, packed)) < sum(map(len, texts)) / 2


def test_a_milestone_is_read_from_ram_alone() -> None:
    text = START + f"milestone m Both: owns sword and solved 0:11\nroom 0:11 outdoors\n{ROOM}"
    world = parse_world("test", text)
    ram: dict[int, int] = {}

    def read(address: int, bank: int) -> int:
        assert bank == 0
        return ram.get(address, 0)

    entries = {entry.name: entry.address for entry in load_table()}
    assert not reached(world.milestones[0], read)
    ram[entries["treasure_flags"]] = 0x20
    assert not reached(world.milestones[0], read)
    ram[entries["room_flags_overworld"] + 0x11] = 0x80
    assert reached(world.milestones[0], read)


def test_a_world_too_big_for_the_cartridge_is_refused() -> None:
    rng = random.Random(1)
    rooms = ""
    for number in range(250):
        words = " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=9)) for _ in range(9))
        rooms += f"room 3:{number:02x} house\n{ROOM}person 4,4 elder\n  say {words}\n"
    with pytest.raises(WorldError, match="bytes too big for the cartridge"):
        build_rom(parse_world("test", "world Big\nstart 3:00 4,4 down\n" + rooms))
