"""Rules of the game: damage, death, dialogs with a choice, puzzles, the event log."""

from collections.abc import Callable

from bramble.emulator import BrambleEmulator
from tests.unit.bramble.conftest import hold, one_room, read_on, tap

Play = Callable[..., BrambleEmulator]
SPITTER = "enemy 4,1 spitter\n"
CHEST, OPEN_CHEST = 0xF1, 0xF0
SOLVED_SOUND = 0x4D
SHOP = (
    "person 4,3 merchant\n  if rupees 10\n    ask Ten gems?\n    pay 10\n    give bombs 5\n  else\n    say Too poor.\n"
)


def _sounds(game: BrambleEmulator) -> list[int]:
    """The events of the ring buffer, oldest first."""
    tail = game.value("sound_queue_tail") & 15
    ring = [game.value("sound_queue", at) for at in range(16)]
    return ring[tail:] + ring[:tail]


def test_difficulty_decides_what_a_shot_costs(play: Play) -> None:
    left = {}
    for difficulty in ("harmless", "normal", "harsh"):
        game = play(one_room({}, SPITTER), difficulty)
        hold(game, "nop", 40)
        left[difficulty] = game.value("health")

    assert left == {"harmless": 12, "normal": 10, "harsh": 8}


def test_death_is_counted_and_revives_the_hero_at_the_last_door(play: Play) -> None:
    game = play(one_room({}, ""))
    hold(game, "right", 6)
    game.write("link_death_trigger", 1)
    hold(game, "nop", 2)
    assert game.value("link_state") == 3
    assert game.value("health") == 0

    hold(game, "nop", 25)
    assert game.decimal("deaths") == 1
    assert game.value("health") == 12
    assert (game.value("link_x"), game.value("link_y")) == (72, 72)
    assert 0x64 in _sounds(game)


def test_the_cursor_answers_a_question(play: Play) -> None:
    game = play(one_room({5: "#........#"}, SHOP + "treasure 4,5 rupees 15\n"))
    hold(game, "down", 4)
    hold(game, "up", 8)
    assert game.decimal("rupees") == 15

    tap(game, "a", rest=10)
    assert game.value("text_display_mode") == 1
    tap(game, "right")
    assert game.read(0xD0E8, 7) == 1
    tap(game, "a")
    assert game.value("text_active") == 0
    assert game.decimal("rupees") == 15

    tap(game, "a", rest=10)
    tap(game, "a")
    read_on(game)
    assert game.decimal("rupees") == 5
    assert game.value("bombs") == 0x05


def test_dialog_can_be_read_as_text(play: Play) -> None:
    game = play(one_room({}, "person 4,3 elder\n  say Mind the brambles, child. They bite.\n"))
    hold(game, "up", 3)
    game.step("a")
    hold(game, "nop", 2)
    assert game.value("text_active") == 1
    assert game.value("disabled_objects") & 0x81

    assert read_on(game) == "Mind the brambles, child. They bite."
    assert game.value("disabled_objects") == 0


def test_a_block_on_a_switch_opens_the_shutter_and_logs_it(play: Play) -> None:
    rows = {4: "W_____Bs_W", 7: "WWWWWWWWWW", 0: "WWWWWWWWWW"}
    walls = {number: "W________W" for number in range(1, 7)}
    game = play(one_room({**walls, **rows, 3: "W__g_____W"}, "chest 2,2 small_key hidden\n", "dungeon1", "pressed"))
    assert game.value("room_collisions", 0x33) == 0x0F
    hold(game, "right", 12)
    assert game.value("pushed_object_id") == 0x14
    hold(game, "nop", 6)

    assert game.value("active_triggers") == 1
    assert game.value("open_shutters") == 1
    assert game.value("room_collisions", 0x33) == 0
    assert game.value("room_layout", 0x22) == 0xF1
    assert game.value("room_flags_group4", 0x11) & 0x80
    assert {0x71, 0x4D, 0x70} <= set(_sounds(game))


def test_a_hidden_chest_does_not_appear_under_the_hero(play: Play) -> None:
    game = play(one_room({}, "chest 4,4 rupees 5 hidden\nenemy 8,1 walker\n", solve="cleared"))
    floor = game.value("room_layout", 0x44)
    game.write("num_enemies", 0)
    hold(game, "nop", 10)
    assert SOLVED_SOUND in _sounds(game)
    assert game.value("room_layout", 0x44) == floor, "the hero would be locked in"

    hold(game, "right", 6)
    assert game.value("link_x") > 0x50
    assert game.value("room_layout", 0x44) == CHEST
    hold(game, "left", 6)
    tap(game, "a", rest=20)
    read_on(game)
    assert game.decimal("rupees") == 5
    assert game.value("room_layout", 0x44) == OPEN_CHEST
