"""Each item works by buttons alone, and RAM shows its effect."""

from collections.abc import Callable

from bramble.emulator import BrambleEmulator
from tests.unit.bramble.conftest import hold, one_room, read_on, tap

Play = Callable[..., BrambleEmulator]
GIFT = "person 4,3 elder\n  give {}\n"


def _take_gift(game: BrambleEmulator) -> None:
    """Take the gift of the elder, who stands above the hero."""
    hold(game, "up", 3)
    tap(game, "a")
    read_on(game)


def test_the_sword_cuts_a_bush(play: Play) -> None:
    game = play(one_room({4: "#....b...#"}, GIFT.format("sword")))
    _take_gift(game)
    assert game.value("sword_level") == 1
    assert game.value("equipped_a") == 5
    hold(game, "down", 1)
    hold(game, "right", 4)
    assert game.value("link_x") < 80 - 3

    tap(game, "a")
    assert game.value("room_collisions", 0x45) == 0


def test_a_rock_needs_the_bracelet_and_can_be_thrown(play: Play) -> None:
    game = play(one_room({4: "#....r...#"}, GIFT.format("bracelet")))
    hold(game, "right", 4)
    tap(game, "a")
    assert game.value("room_collisions", 0x45) == 0x0F
    hold(game, "left", 1)

    _take_gift(game)
    hold(game, "down", 2)
    hold(game, "right", 5)
    tap(game, "a")
    assert game.value("room_collisions", 0x45) == 0
    assert game.value("link_grab_state") == 0x83
    tap(game, "a")
    assert game.value("link_grab_state") == 0


def test_a_bomb_opens_a_cracked_wall_for_good(play: Play) -> None:
    game = play(one_room({3: "#...x....#"}, "person 4,5 elder\n  give bombs 5\n"))
    hold(game, "down", 2)
    tap(game, "a")
    read_on(game)
    hold(game, "up", 3)
    tap(game, "a")
    assert game.value("bombs") == 0x04
    hold(game, "right", 10)
    hold(game, "nop", 25)

    assert game.value("room_layout", 0x34) == 0xE6
    assert game.value("room_flags_overworld", 0x11) & 0x01
    assert game.value("health") == 12


def test_the_feather_jumps_over_a_hole(play: Play) -> None:
    game = play(one_room({4: "#....O...#"}, GIFT.format("feather")))
    _take_gift(game)
    hold(game, "down", 2)
    hold(game, "right", 1)
    game.step("nop")
    game.step("a")
    heights = []
    for _ in range(10):
        game.step("right")
        heights.append(game.value("link_z"))
    assert min(height - 256 for height in heights if height > 127) < -10
    assert game.value("link_x") > 96
    assert game.value("health") == 12


def test_a_hole_costs_half_a_heart_and_puts_the_hero_back(play: Play) -> None:
    game = play(one_room({4: "#....O...#"}, ""))
    hold(game, "right", 8)
    hold(game, "nop", 12)

    assert game.value("health") == 10
    assert game.value("link_x") == 72


def test_flippers_swim(play: Play) -> None:
    game = play(one_room({4: "#....~~..#"}, GIFT.format("flippers")))
    _take_gift(game)
    hold(game, "down", 2)
    hold(game, "right", 8)
    assert game.value("link_swimming") == 1
    hold(game, "right", 14)
    assert game.value("link_swimming") == 0
    assert game.value("link_x") > 112


def test_the_rod_changes_the_season_on_a_stump(play: Play) -> None:
    world = one_room(
        {4: "#...T.~..#"}, "season winter\n----------\n" + "----------\n" * 3 + "------i---\n" + "----------\n" * 3
    )
    game = play(world + "person 4,3 elder\n  give rod winter\n")
    assert game.value("season") == 0
    assert game.value("room_layout", 0x46) == 0xFD
    _take_gift(game)
    hold(game, "down", 1)
    tap(game, "a", rest=12)
    assert game.value("season") == 3
    assert game.value("room_layout", 0x46) == 0xDC


def test_the_menu_assigns_an_inventory_item_to_a_button(play: Play) -> None:
    script = "person 4,3 elder\n  give sword\n  give bombs 3\n  give feather\n"
    game = play(one_room({}, script))
    _take_gift(game)
    assert [game.value("equipped_a"), game.value("equipped_b"), game.value("inventory")] == [5, 3, 0x17]

    tap(game, "start", rest=6)
    assert game.value("menu_type") == 1
    tap(game, "b", rest=6)
    tap(game, "start")
    assert game.value("menu_type") == 0
    assert [game.value("equipped_a"), game.value("equipped_b"), game.value("inventory")] == [5, 0x17, 3]
