"""One decoded state of the game. Observation, rewards and judges' facts are computed from it.

A value that the game lacks or that is unknown is None, never 0. Units: pixels of the room, quarters of a heart, counts.
This module needs neither the emulator nor numpy.
"""

from dataclasses import dataclass
from typing import NamedTuple

from shared.game.decoding.grid import Grid
from shared.game.decoding.objects import GameObject

RoomKey = tuple[int, int]
Neighbours = tuple[int | None, int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Inventory:
    """What the hero owns and has done; decoded only when its bytes change."""

    health: int
    max_health: int
    heart_pieces: int | None
    rupees: int | None
    ore: int | None
    bombs: int | None
    seeds: int | None
    sword: int | None
    shield: int | None
    boomerang: int | None
    slingshot: int | None
    feather: int | None
    satchel: int | None
    equipped_a: int | None
    equipped_b: int | None
    treasures: frozenset[int] | None
    essences: int | None
    seasons: int | None
    small_keys: bytes | None
    boss_keys: int | None
    compasses: int | None
    maps: int | None
    global_flags: bytes | None
    deaths: int | None
    kills: int | None
    rupees_collected: int | None
    trade: int | None


@dataclass(frozen=True, slots=True)
class Progress:
    """What the room flags say: rooms seen, treasures taken, things opened permanently."""

    flags: bytes
    rooms_visited: int
    items_taken: int
    doors_opened: int
    events: int

    def room(self, group: int, room: int) -> int:
        """The flag byte of one room."""
        return self.flags[page_of(group) << 8 | room]


@dataclass(frozen=True, slots=True)
class Dialog:
    """The text box on the screen. `line` is the line being printed, in printable ASCII."""

    text: int
    line: str
    waiting: bool
    choosing: bool
    choice: int | None


@dataclass(frozen=True, slots=True)
class Puzzle:
    """The movable parts of the room and the dungeon."""

    enemies_left: int
    triggers: int | None
    toggles: int | None
    switches: int | None
    torches: int | None
    shutters_open: int | None
    push: int | None
    sliding: bool | None


class Scene(NamedTuple):
    """The slowly changing part of a state: the room, its parts, what the hero owns. The tail of a GameState."""

    group: int
    room: int
    airborne: bool | None
    swimming: bool | None
    holding: bool | None
    transition: bool
    cutscene: bool
    dying: bool
    menu: int | None
    season: int | None
    outdoors: bool
    dungeon: int | None
    in_dungeon: bool | None
    dungeon_position: int | None
    floor: int | None
    neighbours: Neighbours
    dialog: Dialog | None
    puzzle: Puzzle
    inventory: Inventory
    progress: Progress
    grid: Grid


class GameState(NamedTuple):
    """One decoded state: a named tuple, because every step creates one; it is immutable, small and fast to build.

    `fresh` is False when the game never rested during the step; the bytes may then be of a half-done update. `tile` is
    the metatile underfoot, `tile_ahead` the one the hero faces, `ahead` its collision byte. `scene` repeats the fields
    after it: the same object in two states means that none of them changed.
    """

    x: int
    y: int
    facing: int
    hero_state: int
    invincible: bool
    knockback: bool
    tile: int
    tile_ahead: int
    ahead: int
    control: bool
    enemies: tuple[GameObject, ...]
    talkables: tuple[GameObject, ...]
    pickups: tuple[GameObject, ...]
    dangers: tuple[GameObject, ...]
    sounds: tuple[int, ...] | None
    fresh: bool
    scene: Scene
    # As in Scene, in the same order.
    group: int
    room: int
    airborne: bool | None
    swimming: bool | None
    holding: bool | None
    transition: bool
    cutscene: bool
    dying: bool
    menu: int | None
    season: int | None
    outdoors: bool
    dungeon: int | None
    in_dungeon: bool | None
    dungeon_position: int | None
    floor: int | None
    neighbours: Neighbours
    dialog: Dialog | None
    puzzle: Puzzle
    inventory: Inventory
    progress: Progress
    grid: Grid

    @property
    def key(self) -> RoomKey:
        """The room, unique in the world: group and number."""
        return self.group, self.room

    def died_since(self, deaths: int | None) -> bool:
        """Whether the hero dies now, or has died since the game had counted so many deaths."""
        return self.dying or self.inventory.deaths != deaths

    @property
    def keys(self) -> int | None:
        """Small keys of the current dungeon; None outside dungeons."""
        owned = self.inventory.small_keys
        if owned is None or self.dungeon is None or self.dungeon >= len(owned):
            return None
        return owned[self.dungeon]


def page_of(group: int) -> int:
    """The page of room flags, 0 to 3, of a group."""
    return (0, 1, 1, 1, 2, 3, 2, 3)[group & 7]


if GameState._fields[-len(Scene._fields) :] != Scene._fields:
    raise TypeError("a GameState must end with the fields of a Scene, in their order")
