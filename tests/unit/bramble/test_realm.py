"""The realm (a hundred rooms, four seasons, three dungeons), and the moves that the solver needs there."""

from collections.abc import Callable

import pytest

import bramble
from bramble.emulator import BrambleEmulator
from bramble.planner.block_puzzle import plan_pushes
from bramble.solver.plan_execution import blast
from bramble.solver.walker import Walker
from bramble.worlds.check import check_world
from bramble.worlds.model import DIFFICULTIES, Cell, RoomId, WorldError
from bramble.worlds.world_parser import parse_world
from tests.unit.bramble.conftest import one_room

Play = Callable[..., BrambleEmulator]
HERE = RoomId(0, 0x11)
ELDER = (2, 2)


def test_the_realm_has_the_documented_size() -> None:
    world = bramble.world("realm")
    seasons = {name for room in world.rooms.values() for names, _ in room.seasons for name in names}

    assert len(world.rooms) >= 100
    assert {room.theme for room in world.rooms.values()} >= {"dungeon1", "dungeon2", "dungeon3", "cave", "house"}
    assert seasons == {"summer", "autumn", "winter"}
    assert len(world.milestones) >= 20
    assert len(world.trades) == 5


@pytest.mark.parametrize("name", bramble.worlds())
def test_each_difficulty_gives_a_different_rom_of_the_same_size(name: str) -> None:
    roms = [bramble.build(name, difficulty) for difficulty in DIFFICULTIES]

    assert {len(rom) for rom in roms} == {0x8000}
    assert len(set(roms)) == len(DIFFICULTIES)


def _walker(play: Play, rows: dict[int, str], gifts: str, objects: str = "") -> Walker:
    """A hero in a closed room who has received gifts."""
    text = one_room(rows, f"{objects}person 2,2 elder\n{gifts}")
    walker = Walker(play(text), parse_world("test", text))
    walker.talk(HERE, ELDER)
    return walker


def test_a_path_crosses_a_hole_with_the_feather(play: Play) -> None:
    holes = {row: "#.....O..#" for row in range(1, 7)}
    walker = _walker(play, holes, "  give feather\n")
    walker.travel(HERE, (8, 5))

    assert walker.cell == (8, 5)
    walker.travel(HERE, (2, 5))
    assert walker.cell == (2, 5)
    assert walker.game.value("health") == 12


def test_a_path_crosses_ice_when_the_rod_can_call_winter(play: Play) -> None:
    river = {row: "#.....~~.#" for row in range(1, 7)} | {5: "#..T..~~.#"}
    winter = "season winter\n" + "----------\n" * 4 + "------ii--\n" + "----------\n" * 3
    walker = _walker(play, river, "  give rod spring winter\n", winter)
    walker.travel(HERE, (8, 4))

    assert walker.cell == (8, 4)
    assert walker.game.value("season") == 3


def test_the_walker_blasts_a_wall_from_a_safe_distance(play: Play) -> None:
    walker = _walker(play, {3: "#...x....#"}, "  give bombs 3\n")
    blast(walker, HERE, (4, 3))

    assert walker.router.door_open(HERE, (4, 3))
    assert walker.game.value("health") == 12


def _cells(rows: list[str], letters: str) -> frozenset[Cell]:
    return frozenset((x, y) for y, row in enumerate(rows) for x, letter in enumerate(row) if letter in letters)


def test_the_plan_pushes_blocks_onto_their_switches() -> None:
    rows = [
        "WWWWWWWWWW",
        "W________W",
        "W_s____s_W",
        "W___BB___W",
        "W________W",
        "W________W",
        "W________W",
        "WWWWWWWWWW",
    ]
    blocks = _cells(rows, "B")
    pushes = plan_pushes((4, 6), _cells(rows, "_sB"), blocks, _cells(rows, "s"))

    assert pushes is not None
    for (x, y), direction in pushes:
        dx, dy = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}[direction]
        assert (x, y) in blocks
        blocks = blocks - {(x, y)} | {(x + dx, y + dy)}
    assert blocks == _cells(rows, "s")


def test_a_block_in_a_corner_has_no_plan() -> None:
    rows = [
        "WWWWWWWWWW",
        "WB_______W",
        "W________W",
        "W____s___W",
        "W________W",
        "W________W",
        "W________W",
        "WWWWWWWWWW",
    ]

    assert plan_pushes((4, 6), _cells(rows, "_sB"), _cells(rows, "B"), _cells(rows, "s")) is None


@pytest.mark.parametrize(
    ("objects", "sentence"),
    [
        ("warp 4,4 to 0:11 0,0 up\n", "line 12: the warp leads into tree of room 0:11"),
        ("warp 4,4 to 0:11 4,4 up\n", "line 12: the warp ends on another warp"),
        (
            "treasure 2,2 map\ntreasure 3,2 map\nchest 4,2 map\n",
            "line 3: room 0:11 has 3 treasures, the engine holds 2",
        ),
        ("enemy 3,3 bat\n" * 9, "line 3: room 0:11 has 9 of enemy, the engine holds 8"),
        ("sign 4,4\n  say Hello.\n", "line 12: a sign belongs on a solid tile"),
        ("season winter\n----------\n", "line 12: the map has 1 rows instead of 8"),
        ("season sommer\n", "line 12: unknown season 'sommer'"),
        ("person 4,4 elder\n  give rod sommer\n", "line 13: unknown season 'sommer'"),
    ],
)
def test_further_mistakes_are_reported_with_file_and_line(objects: str, sentence: str) -> None:
    rows = "##########\n" + "#........#\n" * 6 + "##########\n"
    with pytest.raises(WorldError, match=f"^test.txt {sentence}"):
        check_world(parse_world("test", f"world Test\nstart 0:11 4,4 down\nroom 0:11 outdoors\n{rows}{objects}"))


@pytest.mark.parametrize(("letters", "act"), [("GGGGGGG.", "shutter"), ("oooooooo", "button")])
def test_too_many_shutters_or_buttons_in_a_room_are_refused(letters: str, act: str) -> None:
    rows = f"##########\n#{letters}#\n#s.......#\n" + "#........#\n" * 4 + "##########\n"
    text = f"world Test\nstart 0:11 4,4 down\nroom 0:11 outdoors\n{rows}"
    with pytest.raises(WorldError, match=rf"^test\.txt line 3: room 0:11 has [79] tiles that act as {act}, the engine"):
        check_world(parse_world("test", text))


def test_a_bush_on_the_edge_of_a_room_is_refused() -> None:
    rows = "####b#####\n" + "#........#\n" * 6 + "##########\n"
    over = "##########\n" + "#........#\n" * 6 + "####.#####\n"
    text = f"world Test\nstart 0:11 4,4 down\nroom 0:11 outdoors\n{rows}room 0:01 outdoors\n{over}"
    with pytest.raises(WorldError, match=r"^test\.txt line 3: bush on the up edge of room 0:11"):
        check_world(parse_world("test", text))
