"""The executor in a running game: one action a step, and one of six outcomes for every course of events."""

from collections.abc import Iterator

import pytest

import bramble
from bramble.planner.search import CUT, LIFT, cells_with
from bramble.worlds.model import STEPS, TREASURES
from services.trainer.executor.executor import Executor
from services.trainer.executor.macros import MoveTo, parse_macro
from services.trainer.executor.outcome import WALK, GameView
from services.trainer.executor.walk import PATIENCE
from shared.game.decoding.decoder import Decoder
from shared.game.ram import capabilities
from studies.plans.placing import FLOOR
from tests.unit.executor.played import Played, played

BOMBS, SWORD, FEATHER = 0x03, 0x05, 0x17
START = 7
GARDEN_PLAN = (
    "INTERACT 7,2", "MOVE_TO -1,4", "INTERACT 4,5", "MOVE_TO 10,4", "MOVE_TO 10,4", "MOVE_TO 4,2", "USE_ITEM sword up",
    "MOVE_TO 4,-1", "MOVE_TO 7,4", "MOVE_TO -1,3", "MOVE_TO 2,3",
)  # fmt: skip


@pytest.fixture
def vale() -> Iterator[Played]:
    with played("vale") as game:
        yield game


def test_garden_is_finished_by_a_list_of_macros() -> None:
    with played("garden") as game:
        assert game.outcomes(*GARDEN_PLAN) == ["done"] * len(GARDEN_PLAN)
        assert game.session.milestones == 4


def test_walk_ends_on_the_tile_that_was_named(vale: Played) -> None:
    for tile in ((1, 1), (7, 1), (2, 5)):
        assert vale.do(f"MOVE_TO {tile[0]},{tile[1]}").outcome == "done"
        assert vale.view.standing == tile


def test_wall_and_tile_outside_are_refused_with_the_first_step(vale: Played) -> None:
    for target in ("0,0", "30,3", "-1,-1"):
        result = vale.do(f"MOVE_TO {target}")
        assert (result.outcome, result.steps) == ("stuck", 0)


def test_walk_through_a_door_ends_as_room_change(vale: Played) -> None:
    world = bramble.world("vale")
    room, warp = next((room, warp) for room in world.rooms.values() for warp in room.of_kind("warp"))
    column, row = warp.cell
    vale.put(room.room_id.group, room.room_id.room, (column, row + 1))
    assert vale.do(f"MOVE_TO {column},{row}").outcome == "room_change"


def test_health_lost_ends_the_macro() -> None:
    with played("vale", "normal") as game:
        executor = Executor(MoveTo((1, 1)), game.view)
        action = executor.next(game.view)
        assert action is not None
        game.poke("health", 8)
        game.session.step(action)
        assert executor.next(game.view) is None
        assert executor.result is not None
        assert executor.result.outcome == "hp_drop"
        assert executor.result.steps == 1


def test_macro_that_takes_too_long_ends_as_timeout(vale: Played) -> None:
    result = vale.do("MOVE_TO 1,1", limit=5)
    assert (result.outcome, result.steps) == ("timeout", 5)


def test_missing_capability_ends_as_unknown() -> None:
    with played("vale") as game:
        bare = Decoder(capabilities.CORE).begin(game.session.image)
        view = GameView(bare, game.session.image)
        for text in ("PUSH_BLOCK 3,3 up", "USE_ITEM sword"):
            executor = Executor(parse_macro(text), view)
            assert executor.next(view) is None
            assert executor.result is not None
            assert executor.result.outcome == "unknown"


def test_walk_is_planned_again_when_the_grid_changes(vale: Played) -> None:
    vale.do("MOVE_TO 1,1")
    executor = Executor(MoveTo((6, 1)), vale.view)
    for _ in range(3):
        vale.session.step(executor.next(vale.view) or 0)
    for row in range(1, 4):  # a wall of three tiles appears in the way
        vale.poke("room_collisions", 0x0F, row << 4 | 4)
    went = set()
    while (action := executor.next(vale.view)) is not None:
        vale.session.step(action)
        went.add(vale.view.standing)
    assert executor.result is not None
    assert executor.result.outcome in ("done", "stuck")
    assert not went & {(4, 1), (4, 2), (4, 3)}


def test_every_block_of_the_vale_is_pushed_wherever_it_can_be(vale: Played) -> None:
    pushed = refused = 0
    for room_id, room in bramble.world("vale").rooms.items():
        blocks = [(c, r) for r, row in enumerate(room.rows) for c, letter in enumerate(row) if letter == "B"]
        for column, row in blocks:
            for name, (dx, dy) in STEPS.items():
                behind, ahead = (column - dx, row - dy), (column + dx, row + dy)
                if room.rows[behind[1]][behind[0]] not in "_%/R":
                    continue
                vale.put(room_id.group, room_id.room, behind)
                free = room.rows[ahead[1]][ahead[0]] in "_%/Rs" and 0 < ahead[0] < 9 and 0 < ahead[1] < 7
                outcome = vale.do(f"PUSH_BLOCK {column},{row} {name}").outcome
                assert outcome == ("done" if free else "stuck"), (room_id, (column, row), name)
                pushed, refused = pushed + free, refused + (not free)
    assert (pushed, refused) == (4, 0)


def test_every_locked_door_of_the_vale_opens_with_its_key(vale: Played) -> None:
    opened = 0
    for room_id, room in bramble.world("vale").rooms.items():
        doors = [(c, r) for r, row in enumerate(room.rows) for c, letter in enumerate(row) if letter in "Kk"]
        for column, row in doors:
            name = {0: "up", 7: "down"}.get(row) or ("left" if column == 0 else "right")
            before = column - STEPS[name][0], row - STEPS[name][1]
            vale.put(room_id.group, room_id.room, before)
            if vale.view.state.grid.rows[2 * row][2 * column] == 0:
                continue  # opened from the other side, or together with its neighbour
            assert vale.do(f"PUSH_BLOCK {column},{row} {name}").outcome == "stuck", "no key yet"
            dungeon = vale.view.state.dungeon
            assert dungeon is not None
            vale.poke("small_keys", 1, dungeon)
            vale.poke("boss_keys", 0xFF)
            assert vale.do(f"PUSH_BLOCK {column},{row} {name}").outcome == "done", (room_id, (column, row))
            opened += 1
            vale.poke("boss_keys", 0)
            vale.poke("small_keys", 0, dungeon)
    assert opened == 2, "one small, one great; each opens on both sides"


@pytest.mark.parametrize(
    ("act", "item", "macro", "count"),
    [(CUT, "sword", "USE_ITEM sword {side}", 11), (LIFT, "bracelet", "INTERACT {column},{row}", 5)],
)
def test_every_bush_and_rock_of_the_vale_is_removed(act: int, item: str, macro: str, count: int, vale: Played) -> None:
    removed = 0
    for room_id, room in bramble.world("vale").rooms.items():
        for column, row in cells_with(room, act):
            side, before = next(
                (side, (column - dx, row - dy))
                for side, (dx, dy) in STEPS.items()
                if room.rows[row - dy][column - dx] in FLOOR
            )
            vale.put(room_id.group, room_id.room, before)
            vale.own(TREASURES[item])
            assert vale.view.state.grid.rows[2 * row][2 * column] == 1
            assert vale.do(macro.format(side=side, column=column, row=row)).outcome == "done"
            for _ in range(10):
                vale.session.step(0)
            assert vale.view.state.grid.rows[2 * row][2 * column] == 0, (room_id, (column, row))
            removed += 1
    assert removed == count


def test_every_cracked_wall_of_the_realm_is_blasted() -> None:
    walls = [
        (room_id, (column, row))
        for room_id, room in bramble.world("realm").rooms.items()
        for row, letters in enumerate(room.rows)
        for column, letter in enumerate(letters)
        if letter in "Xx"
    ]
    blasted = 0
    with played("realm") as game:
        for room_id, (column, row) in walls:
            name = {0: "up", 7: "down"}.get(row) or {0: "left", 9: "right"}.get(column, "up")
            game.put(room_id.group, room_id.room, (column - STEPS[name][0], row - STEPS[name][1]))
            if game.view.state.grid.rows[2 * row][2 * column] == 0:
                continue  # opened from the other side
            game.own(BOMBS)
            game.poke("bombs", 5)
            assert game.do(f"USE_ITEM bombs {name}").outcome == "done"
            for _ in range(40):
                game.session.step(0)
            assert game.view.state.grid.rows[2 * row][2 * column] == 0, (room_id, (column, row))
            blasted += 1
    assert blasted >= 3


def test_item_in_the_pack_is_put_on_a_button_and_used(vale: Played) -> None:
    vale.own(SWORD)
    vale.poke("treasure_flags", 1 << (BOMBS & 7) | 4, 0)
    vale.poke("equipped_a", FEATHER)
    vale.poke("inventory", BOMBS, 2)
    vale.poke("bombs", 0x05)
    vale.session.step(0)
    assert vale.do("USE_ITEM bombs").outcome == "done"
    inventory = vale.session.state.inventory
    assert (inventory.equipped_b, inventory.bombs) == (BOMBS, 4)
    assert vale.session.state.menu == 0
    assert vale.do("USE_ITEM slingshot").outcome == "stuck"


def test_menu_left_open_is_closed_first(vale: Played) -> None:
    vale.session.step(START)
    for _ in range(6):
        vale.session.step(0)
    assert vale.session.state.menu
    assert vale.do("MOVE_TO 1,1").outcome == "done"


def test_nothing_to_talk_to_is_reported(vale: Played) -> None:
    assert vale.do("INTERACT").outcome == "stuck"


def test_hero_who_does_not_turn_yet_turns_again(vale: Played) -> None:
    """A step may be one frame, and a swing of the sword takes twelve, in which he cannot turn."""
    assert vale.do("MOVE_TO 5,5").outcome == "done"
    view = vale.view
    executor = Executor(parse_macro("INTERACT 5,6"), view)
    assert {executor.next(view) for _ in range(2 * PATIENCE)} == {WALK[2]}
