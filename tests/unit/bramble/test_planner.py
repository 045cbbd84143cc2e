"""The planner finds a plan where one exists, and otherwise names the unreachable milestones."""

import pytest

import bramble
from bramble.planner.search import PlanStep, find_plan, visited_rooms
from bramble.worlds.model import RoomId, WorldError
from bramble.worlds.world_parser import parse_world

HEAD = """world Test
start 4:71 4,4 up
season spring
health 3
milestone end The end: essences 1
"""
HALL = """room 4:71 dungeon1
WWWWKKWWWW
W________W
W________W
W_________
W_________
W________W
W________W
WWWWWWWWWW
{objects}
"""
SIDE = """room 4:72 dungeon1
WWWWKKWWWW
W________W
W________W
__________
__________
W________W
W________W
WWWWWWWWWW
{objects}
room 4:73 dungeon1
WWWWWWWWWW
W________W
W________W
_________W
_________W
W________W
W________W
WWWWWWWWWW

room 4:62 dungeon1
WWWWWWWWWW
W________W
W________W
W________W
W________W
W________W
W________W
WWWWKKWWWW
{dead_end}
"""
END = """room 4:61 dungeon1
WWWWWWWWWW
W________W
W________W
W________W
W________W
W________W
W________W
WWWWKKWWWW
treasure 4,3 essence 1
"""


def world(hall: str = "", side: str = "", dead_end: str = "") -> bramble.World:
    """A hall with a locked door to the end, and a side room with a locked door to nothing."""
    text = "\n".join((HEAD, HALL.format(objects=hall), SIDE.format(objects=side, dead_end=dead_end), END))
    return parse_world("test", text)


@pytest.mark.parametrize("name", bramble.worlds())
def test_every_shipped_world_can_be_finished_and_visits_all_rooms(name: str) -> None:
    found = bramble.world(name)
    assert find_plan(found)
    assert visited_rooms(found) == set(found.rooms)


def test_the_plan_spends_the_only_key_on_the_right_door() -> None:
    steps = find_plan(world(hall="chest 2,2 small_key"))
    assert PlanStep("open", RoomId(4, 0x71), (4, 0)) in steps
    assert steps[-1].kind == "take"


def test_a_key_behind_its_own_door_makes_a_world_unfinishable() -> None:
    with pytest.raises(WorldError, match="cannot be finished: no way to end"):
        find_plan(world(dead_end="chest 2,2 small_key"))


def test_a_spent_key_opens_no_second_door() -> None:
    chain = world(hall="chest 2,2 small_key", dead_end="chest 2,2 small_key")
    opened = [step.room_id.room for step in find_plan(chain) if step.kind == "open"]
    assert 0x71 in opened


def test_a_fight_needs_the_sword() -> None:
    guarded = parse_world(
        "test",
        "\n".join(
            (
                HEAD,
                HALL.format(objects="chest 2,2 small_key hidden\nenemy 5,5 walker").replace(
                    "dungeon1", "dungeon1 solve cleared"
                ),
                SIDE.format(objects="", dead_end=""),
                END,
            )
        ),
    )
    with pytest.raises(WorldError, match="no way to end"):
        find_plan(guarded)


def test_a_boss_key_opens_doors_of_its_own_dungeon_only() -> None:
    hall = HALL.replace("KK", "kk").format(objects="warp 1,1 to 4:91 2,3 down")
    end = END.replace("KK", "kk")
    other = "room 4:91 dungeon3\nWWWWWWWWWW\n" + "W________W\n" * 6 + "WWWWWWWWWW\nwarp 1,1 to 4:71 2,3 down\n"
    side = SIDE.replace("KK", "WW").format(objects="", dead_end="").split("room 4:62")[0]
    key = "chest 4,4 boss_key\n"
    text = "\n".join((HEAD, hall + "\n{}", side, end, other + "{}"))

    assert find_plan(parse_world("test", text.format(key, "")))
    with pytest.raises(WorldError, match="no way to end"):
        find_plan(parse_world("test", text.format("", key)))


def test_cave_keys_and_the_boss_key_of_dungeon_8_open_nothing() -> None:
    """As in the engine, which holds no keys outside of dungeons and boss keys of seven dungeons."""
    hall, end = HALL.format(objects="chest 2,2 small_key").replace("W_________", "W________W"), END
    dungeon = "\n".join((HEAD, hall, end))
    eighth = dungeon.replace("4:71", "5:f8").replace("4:61", "5:e8")
    great = {text: text.replace("KK", "kk").replace("small_key", "boss_key") for text in (dungeon, eighth)}

    for text in (dungeon, eighth, great[dungeon]):
        assert find_plan(parse_world("test", text))
    for text in (dungeon.replace("dungeon1", "cave"), great[dungeon].replace("dungeon1", "cave"), great[eighth]):
        with pytest.raises(WorldError, match="no way to end"):
            find_plan(parse_world("test", text))


def test_an_unreachable_switch_keeps_the_shutter_closed() -> None:
    hall = HALL.replace("KK", "gg").replace("dungeon1", "dungeon1 solve pressed").format(objects="")
    hall = hall.replace("W________W", "{}", 1).replace("W________W", "W___s____W", 1)
    side = SIDE.replace("KK", "WW").format(objects="", dead_end="").split("room 4:62")[0]
    text = "\n".join((HEAD, hall, side, END.replace("KK", "__")))

    assert find_plan(parse_world("test", text.format("W________W").replace("W_________", "W__B______", 1)))
    with pytest.raises(WorldError, match="no way to end"):
        find_plan(parse_world("test", text.format("WB_______W")))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("thing", ["flag", "trade"])
def test_the_search_ends_when_scripts_undo_each_other(thing: str) -> None:
    lamp = "  if flag lamp\n    clear lamp\n  else\n    set lamp\n"
    hat = "  if owns hat\n    take hat\n  else\n    give hat\n"
    hall = f"person 4,4 elder\n{lamp if thing == 'flag' else hat}"
    text = (
        HEAD + "flag lamp\ntrade hat: A hat!\n" + HALL.format(objects=hall) + SIDE.format(objects="", dead_end="") + END
    )

    with pytest.raises(WorldError, match="cannot be finished: no way to end"):
        find_plan(parse_world("test", text))
    assert find_plan(parse_world("test", text.replace(hall, hall + "chest 2,2 small_key\n")))
