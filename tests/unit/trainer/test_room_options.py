"""Options of exploration that use what RAM says about a room: leaving it, acting on its targets, striking."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from bramble.registration import bramble_game
from services.trainer.executor.macros import ITEMS
from services.trainer.executor.outcome import WAIT, WALK, B, GameView
from services.trainer.exploration.options import OptionMix
from services.trainer.exploration.pushes import pushes_between
from services.trainer.exploration.room_options import RoomMix, RoomOptions
from services.trainer.exploration.targets import OBJECT_KIND, targets_of
from services.trainer.options.strikes import BLOCKED, Strikes
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.grid import tile_of
from shared.game.decoding.objects import GameObject
from shared.game.decoding.state import GameState
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode, true_start
from shared.game.ram.variables import entries
from studies.plans.placing import warp

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")
NOTHING = RoomMix(sticky=0, leave=0, target=0, strike=0, push=0, press=0, item=0, buttons=OptionMix(move=0, a=0, b=0))
RIGHT = 1
ARRIVAL = 8  # steps until the room has scrolled in


class Played:
    """A garden in which options choose the buttons."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator, self._decoder = emulator, Decoder(emulator.game.capabilities)
        begin_episode(emulator, true_start(emulator.game).state, 1)
        image, _ = emulator.take()
        self.view = GameView(self._decoder.begin(image), image)

    def enter(self, room: tuple[int, int], tile: tuple[int, int]) -> None:
        """Place the hero in another room."""
        warp(self._emulator, room, tile)
        for _ in range(ARRIVAL):
            self._emulator.step(WAIT, 4)
        image, _ = self._emulator.take()
        self.view = GameView(self._decoder.begin(image), image)

    def give(self, item: int) -> None:
        """Let the hero have one more item, on no button yet."""
        flags = entries()["treasure_flags"].address
        self._emulator.poke(flags + item // 8, 1 << item % 8)
        self._emulator.poke(entries()["inventory"].address, item)

    def until(self, reached: Callable[[GameState], bool], mix: RoomMix, seed: int = 0, steps: int = 400) -> list[int]:
        """The actions until the state was reached."""
        options = RoomOptions(np.random.default_rng(seed), mix)
        actions: list[int] = []
        while not reached(self.view.state):
            assert len(actions) < steps, "the options never get there"
            actions.append(options.next(self.view))
            self._emulator.step(actions[-1], 4)
            image, fresh = self._emulator.take()
            self.view = GameView(self._decoder.decode(image, fresh), image)
        return actions


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    emulator = Emulator(bramble_game("garden"))
    yield emulator
    emulator.close()


@pytest.fixture
def garden(emulator: Emulator) -> Played:
    return Played(emulator)


def test_a_single_sign_is_a_kind_as_all_the_grass_is(garden: Played) -> None:
    kinds = targets_of(garden.view)
    single = [target for targets in kinds.values() for target in targets if len(targets) == 1]
    sign = next(target for target in single if target.tile == (7, 2))
    assert sign.solid
    assert max(map(len, kinds.values())) > 10
    tiles = [target for kind, targets in kinds.items() if kind < OBJECT_KIND for target in targets]
    assert len(tiles) == len({target.tile for target in tiles}) <= 80


def test_leaving_takes_the_hero_through_the_rooms(garden: Played) -> None:
    first = garden.view.state.key
    garden.until(lambda state: state.key != first and state.control, replace(NOTHING, leave=1))


def test_pressing_a_at_targets_finds_somebody_who_talks(garden: Played) -> None:
    garden.until(lambda state: state.dialog is not None, replace(NOTHING, target=1, press=1), steps=2_000)


def test_equal_seeds_give_equal_options(emulator: Emulator) -> None:
    def course(seed: int) -> list[int]:
        first = Played(emulator)
        return first.until(lambda state: state.key != first_room, RoomMix(), seed, 3_000)

    first_room = Played(emulator).view.state.key
    assert course(3) == course(3)
    assert course(3) != course(4)


def with_enemy(view: GameView, dx: int, dy: int, facing: int) -> GameView:
    state = view.state
    enemy = GameObject(1, 0, state.x + dx, state.y + dy, 2)
    return GameView(state._replace(enemies=(enemy,), facing=facing), view.image)


def test_an_enemy_in_reach_is_faced_and_struck(garden: Played) -> None:
    strikes = Strikes(B)
    assert strikes.next(with_enemy(garden.view, 18, 2, facing=0)) == WALK[RIGHT]
    near = with_enemy(garden.view, 18, 2, facing=RIGHT)
    assert [strikes.next(near) for _ in range(4)] == [B, WAIT, WAIT, B]


def test_a_sized_strike_keeps_away_from_a_large_enemy(garden: Played) -> None:
    near = with_enemy(garden.view, 30, 15, facing=RIGHT)
    (enemy,) = near.state.enemies
    large = GameView(near.state._replace(enemies=(enemy._replace(half_width=14, half_height=14),)), near.image)
    assert Strikes(B, sized=True).next(large) == B, "its edge is 16 pixels away, and one pixel off the line"
    assert Strikes(B).next(large) == WALK[RIGHT]
    assert Strikes(B, sized=True).next(near) == WALK[RIGHT], "an enemy of the usual size is farther away"


def test_a_strike_ends_without_enemies_and_before_a_wall(garden: Played) -> None:
    assert Strikes(B).next(garden.view) is None
    far = with_enemy(garden.view, 60, 0, facing=RIGHT)
    strikes = Strikes(B)
    walked = [strikes.next(far) for _ in range(BLOCKED + 1)]
    assert walked == [WALK[RIGHT]] * BLOCKED + [None]


class Room:
    """A room drawn as text: `.` can be stood on, `#` cannot, `B` is the block, `x` its goal, `h` the hero."""

    def __init__(self, *rows: str) -> None:
        tiles = {(column, row): mark for row, line in enumerate(rows) for column, mark in enumerate(line)}
        self.standable = {tile for tile, mark in tiles.items() if mark in ".xh"}
        self.block, self.goal, self.hero = ({mark: tile for tile, mark in tiles.items()}[mark] for mark in "Bxh")

    def pushes(self) -> list[str]:
        return [str(push) for push in pushes_between(self.block, self.goal, self.hero, self.standable)]


def test_a_block_is_pushed_around_a_corner_with_the_fewest_pushes() -> None:
    assert Room(
        "#######",
        "#h....#",
        "#.B...#",
        "#....x#",
        "#.....#",
        "#######",
    ).pushes() == ["PUSH_BLOCK 2,2 right", "PUSH_BLOCK 3,2 right", "PUSH_BLOCK 4,2 right", "PUSH_BLOCK 5,2 down"]


@pytest.mark.parametrize(
    "room",
    [
        Room("####", "#hB#", "#.x#", "####"),  # the hero cannot get behind it
        Room("#####", "#h.B#", "#x..#", "#####"),  # it stands in a corner
        Room("######", "#h#B.#", "#.#.x#", "######"),  # he cannot get there
    ],
)
def test_a_block_that_cannot_get_there_is_not_pushed(room: Room) -> None:
    assert room.pushes() == []


def test_blocks_pushed_onto_other_tiles_solve_the_first_puzzle_of_the_mill() -> None:
    emulator = Emulator(bramble_game("vale"))
    mill = Played(emulator)
    mill.enter((4, 0x71), (4, 5))
    solved = mill.view.state.progress.events
    mill.until(lambda state: state.progress.events > solved, replace(NOTHING, target=1, push_onto=1), steps=20_000)
    emulator.close()


def test_a_hole_is_crossed_with_the_item_that_jumps() -> None:
    emulator = Emulator(bramble_game("realm"))
    cellar = Played(emulator)
    cellar.give(ITEMS["feather"])
    cellar.enter((4, 0x52), (6, 3))
    hazards = {target.tile for found in targets_of(cellar.view, hazards=True).values() for target in found}
    assert hazards > {target.tile for found in targets_of(cellar.view).values() for target in found}
    cellar.until(lambda state: tile_of(state.x, state.y)[0] < 3, replace(NOTHING, target=1, item=1), steps=4_000)
    emulator.close()
