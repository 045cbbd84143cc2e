"""From a RAM image to a GameState: once a step, for the policy, the rewards and the judges alike.

The table says which capability a variable needs; without it the value is None. The static parts (inventory, room flags,
walls: see static_parts.py) are decoded only when their bytes changed. Any bytes give a state: a crashing game must not
stop the training, so nothing here raises on content.
"""

from operator import itemgetter
from typing import Final

from shared.game.decoding import objects
from shared.game.decoding.grid import Grid, grid_of
from shared.game.decoding.state import Dialog, GameState, Inventory, Neighbours, Progress, Puzzle, Scene
from shared.game.decoding.static_parts import ImageParts, enabled_of, static_parts
from shared.game.ram import offsets
from shared.game.ram.variables import entries, read, read_number

NO_DUNGEON: Final = 0xFF
RIDING: Final = 0xD1
# The bytes of the hero that change with every step, in the order in which `decode` names them.
_HERO: Final = itemgetter(
    offsets.LINK_X,
    offsets.LINK_Y,
    offsets.LINK_DIRECTION,
    offsets.LINK_STATE,
    offsets.LINK_INVINCIBILITY,
    offsets.LINK_KNOCKBACK,
)
IN_PLAY: Final = 2
SEED_KINDS: Final = ("ember", "scent", "pegasus", "gale", "mystery")
_ITEMS: Final = slice(offsets.SMALL_KEYS, offsets.GLOBAL_FLAGS + 16)
_DEATHS_KILLS: Final = slice(offsets.DEATHS, offsets.DEATHS + 4)
_COLLECTED: Final = slice(offsets.RUPEES_COLLECTED, offsets.RUPEES_COLLECTED + 2)
_FLAGS: Final = slice(offsets.ROOM_FLAGS_OVERWORLD, offsets.ROOM_FLAGS_OVERWORLD + 0x400)


def _rows(down: int) -> bytes:
    """Pixel row -> place of the first tile of the row of tiles `down` pixels below it, kept inside of the room."""
    return bytes(min(max(y + down, 0), 175) & 0xF0 for y in range(256))


def _columns(right: int) -> bytes:
    """Pixel column -> column of tiles `right` pixels beside it, kept inside of the room."""
    return bytes(min(max(x + right, 0), 255) >> 4 for x in range(256))


_UNDERFOOT_ROW, _UNDERFOOT_COLUMN = _rows(5), _columns(0)
# The pixel that the hero faces, by direction.
_AHEAD: Final = tuple((_columns(right), _rows(down)) for right, down in ((0, -9), (10, 3), (0, 13), (-11, 3)))


def _flag_table(mask: int) -> bytes:
    """A table for `bytes.translate`: 1 where the flag byte has the bit."""
    return bytes(1 if value & mask else 0 for value in range(256))


_HAS_VISITED, _HAS_ITEM, _HAS_EVENT, _HAS_DONE = (_flag_table(mask) for mask in (0x10, 0x20, 0x40, 0x80))
_HAS_DOOR: Final = tuple(_flag_table(mask) for mask in (1, 2, 4, 8))
# Outdoors the door bits have another meaning in each room: in group 0, and in the first half of the page that Oracle's
# Subrosia shares with houses. In Bramble that page has houses and caves.
_OVERWORLD: Final = 0x100
_WITH_SUBROSIA: Final = 0x180
_FLOORS: Final = 4  # of a dungeon's map in RAM; higher floors are unknown
_RUPEE_ROOMS: Final = slice(0x1F0, 0x200)  # not room flags: the rupees left in two dungeon rooms


class Decoder:
    """Decodes consecutive RAM images of one running game. Call `begin` after every load of a state."""

    def __init__(self, capabilities: frozenset[str]) -> None:
        self._capabilities = capabilities
        self._dialog, self._menu, self._sound = (name in capabilities for name in ("dialog", "menu", "sound"))
        self._season, self._dungeon = "season" in capabilities, "dungeon" in capabilities
        self._jump, self._swim, self._grab = (name in capabilities for name in ("jump", "swim", "grab"))
        self._companion, self._scripts = "companion" in capabilities, "oracle" in capabilities
        self._outdoors = _WITH_SUBROSIA if "oracle" in capabilities else _OVERWORLD
        self._inventory: tuple[bytes, Inventory] | None = None
        self._progress: tuple[bytes, Progress] | None = None
        self._puzzle: tuple[tuple[object, ...], Puzzle] | None = None
        self._grid: Grid | None = None
        self._tail = 0
        self._silence: tuple[int, ...] | None = () if self._sound else None
        self._static: ImageParts = ()
        self._scene: Scene | None = None
        self._riding = self._control = False
        self._talkers: tuple[int, ...] = ()
        self._alive = 0
        self._people = self._parts = objects.FREE
        self._things = False

    def begin(self, image: bytes) -> GameState:
        """The first state after a load; sounds logged before it are no events."""
        self._tail = image[offsets.SOUND_QUEUE_TAIL]
        return self.decode(image)

    def decode(self, image: bytes, fresh: bool = True) -> GameState:
        """The state in a RAM image (see table.py)."""
        sounds, scene, static = self._silence, self._scene, static_parts(image)
        if scene is None or static != self._static:
            self._static = static
            scene, sounds = self._decode_static(image), self._sounds(image)
        x, y, facing, hero_state, invincible, knockback = _HERO(image)
        if self._riding:
            x, y = image[offsets.COMPANION_X], image[offsets.COMPANION_Y]
        facing &= 3
        columns, rows = _AHEAD[facing]
        ahead = rows[y] | columns[x]
        pickups, dangers = objects.parts(image, self._parts, self._people) if self._things else ((), ())
        # `tuple.__new__` skips the named tuple's slower constructor: this runs every step.
        return tuple.__new__(
            GameState,
            (
                x,
                y,
                facing,
                hero_state,
                invincible != 0,
                knockback != 0,
                image[offsets.ROOM_LAYOUT + (_UNDERFOOT_ROW[y] | _UNDERFOOT_COLUMN[x])],
                image[offsets.ROOM_LAYOUT + ahead],
                image[offsets.ROOM_COLLISIONS + ahead],
                self._control and hero_state == 1,
                objects.enemies(image, self._alive) if self._alive else (),
                objects.talkables(image, self._talkers) if self._talkers else (),
                pickups,
                dangers,
                sounds,
                fresh,
                scene,
                *scene,
            ),
        )

    def _decode_static(self, image: bytes) -> Scene:
        """Decode the static parts; return the previous scene if the result is equal."""
        self._riding = self._companion and image[offsets.LINK_OBJECT_INDEX] == RIDING
        self._talkers = objects.talkers(image)
        self._people, enemies, self._parts = enabled_of(self._static)
        self._alive = objects.live(enemies)
        self._things = self._people != objects.FREE or self._parts != objects.FREE
        self._grid = grid_of(image, self._grid)
        scene = self._scene_of(image)
        idle = image[offsets.GAME_STATE] == IN_PLAY and image[offsets.DISABLED_OBJECTS] & 0x81 == 0
        busy = scene.transition or scene.dying or scene.dialog or scene.menu or image[offsets.PALETTE_FADE_MODE]
        led = self._scripts and image[offsets.SIMULATED_INPUT] != 0  # a script presses the buttons
        self._control = idle and not busy and not led and image[offsets.CUTSCENE_INDEX] == 1
        if self._scene is None or scene != self._scene:
            self._scene = scene
        return self._scene

    def _scene_of(self, image: bytes) -> Scene:
        group, room, scroll = image[offsets.ACTIVE_GROUP] & 7, image[offsets.ACTIVE_ROOM], image[offsets.SCROLL_MODE]
        number = image[offsets.DUNGEON_INDEX]
        in_dungeon = number != NO_DUNGEON if self._dungeon else None
        inventory, progress = self._items(image), self._flags(image)
        return Scene(
            group=group,
            room=room,
            airborne=image[offsets.LINK_IN_AIR] & 0x0F != 0 if self._jump else None,
            swimming=image[offsets.LINK_SWIMMING] & 0x0F != 0 if self._swim else None,
            holding=image[offsets.LINK_GRAB_STATE] & 0x80 != 0 if self._grab else None,
            transition=scroll & 0x0E != 0 or scroll & 0x0F == 0,
            cutscene=image[offsets.CUTSCENE_INDEX] >= 6,
            dying=image[offsets.LINK_DEATH_TRIGGER] != 0 or inventory.health == 0,
            menu=image[offsets.MENU_TYPE] if self._menu else None,
            season=image[offsets.SEASON] & 3 if self._season else None,
            outdoors=image[offsets.TILESET_FLAGS] & 1 != 0,
            dungeon=number if in_dungeon else None,
            in_dungeon=in_dungeon,
            dungeon_position=image[offsets.DUNGEON_MAP_POSITION] & 63 if in_dungeon else None,
            floor=image[offsets.DUNGEON_FLOOR] & 7 if in_dungeon else None,
            neighbours=_neighbours(image, group, room, progress, in_dungeon),
            dialog=self._text(image),
            puzzle=self._puzzle_parts(image),
            inventory=inventory,
            progress=progress,
            grid=self._grid or grid_of(image, None),
        )

    def _known(self, image: bytes, name: str) -> int | None:
        return read_number(image, name) if entries()[name].capability in self._capabilities else None

    def _known_bytes(self, image: bytes, name: str) -> bytes | None:
        if entries()[name].capability not in self._capabilities:
            return None
        value = read(image, name)
        return value if isinstance(value, bytes) else None

    def _known_bits(self, image: bytes, name: str) -> int | None:
        value = self._known_bytes(image, name)
        return None if value is None else int.from_bytes(value, "little")

    def _items(self, image: bytes) -> Inventory:
        source = image[_ITEMS] + image[_DEATHS_KILLS] + image[_COLLECTED]
        if self._inventory is None or self._inventory[0] != source:
            self._inventory = source, self._inventory_of(image)
        return self._inventory[1]

    def _inventory_of(self, image: bytes) -> Inventory:
        treasures = self._known_bits(image, "treasure_flags")
        numbers = {
            field: self._known(image, name)
            for field, name in (
                ("heart_pieces", "heart_pieces"), ("rupees", "rupees"), ("ore", "ore_chunks"), ("bombs", "bombs"),
                ("sword", "sword_level"), ("boomerang", "boomerang_level"), ("slingshot", "slingshot_level"),
                ("feather", "feather_level"), ("satchel", "satchel_level"), ("equipped_a", "equipped_a"),
                ("equipped_b", "equipped_b"), ("essences", "essences"), ("seasons", "seasons_obtained"),
                ("deaths", "deaths"), ("kills", "enemies_killed"), ("rupees_collected", "rupees_collected"),
                ("trade", "trade_item"),
            )
        }  # fmt: skip
        shield = self._known(image, "shield_level")
        if shield is not None and treasures is not None and not treasures >> 1 & 1:
            shield = 0  # a new file has level 1 without a shield
        seeds = [self._known(image, f"{kind}_seeds") for kind in SEED_KINDS]
        return Inventory(
            health=image[offsets.HEALTH],
            max_health=image[offsets.MAX_HEALTH],
            shield=shield,
            seeds=None if None in seeds else sum(count or 0 for count in seeds),
            treasures=None if treasures is None else frozenset(n for n in range(128) if treasures >> n & 1),
            small_keys=self._known_bytes(image, "small_keys"),
            boss_keys=self._known_bits(image, "boss_keys"),
            compasses=self._known_bits(image, "compasses"),
            maps=self._known_bits(image, "dungeon_maps"),
            global_flags=self._known_bytes(image, "global_flags"),
            **numbers,
        )

    def _flags(self, image: bytes) -> Progress:
        source = image[_FLAGS]
        if self._progress is None or self._progress[0] != source:
            self._progress = source, _progress_of(source, self._outdoors)
        return self._progress[1]

    def _text(self, image: bytes) -> Dialog | None:
        """The text box; texts of menus are no dialog."""
        mode = image[offsets.TEXT_DISPLAY_MODE]
        if (
            not self._dialog
            or image[offsets.TEXT_ACTIVE] == 0
            or mode == 2
            or (self._menu and image[offsets.MENU_TYPE])
        ):
            return None
        printing = image[offsets.TEXT_PRINT_STATE]
        choosing = mode == 1 and printing == 2
        line = image[offsets.TEXT_LINE : offsets.TEXT_LINE + 16].partition(b"\0")[0]
        return Dialog(
            text=((image[offsets.TEXT_INDEX_HIGH] - 4) & 0xFF) << 8 | image[offsets.TEXT_INDEX_LOW],
            line="".join(chr(byte) if 0x20 <= byte < 0x7B else " " for byte in line).strip(),
            waiting=printing in (0x05, 0x0F),
            choosing=choosing,
            choice=image[offsets.TEXT_OPTION_CURSOR] if choosing and "choice" in self._capabilities else None,
        )

    def _puzzle_parts(self, image: bytes) -> Puzzle:
        """The puzzle's parts; the previous object if none changed."""
        source = (
            image[offsets.NUM_ENEMIES : offsets.SWITCH_STATE + 1],
            image[offsets.ACTIVE_TRIGGERS],
            image[offsets.TORCHES_LIT],
            image[offsets.OPEN_SHUTTERS],
            image[offsets.PUSH_COUNTER],
            image[offsets.PUSHED_OBJECT_ENABLED],
        )
        if self._puzzle is None or self._puzzle[0] != source:
            self._puzzle = source, self._puzzle_of(image)
        return self._puzzle[1]

    def _puzzle_of(self, image: bytes) -> Puzzle:
        has = self._capabilities
        dungeon_wide, puzzle = "puzzle_dungeon" in has, "puzzle" in has
        return Puzzle(
            enemies_left=image[offsets.NUM_ENEMIES],
            triggers=image[offsets.ACTIVE_TRIGGERS] if puzzle else None,
            toggles=image[offsets.TOGGLE_STATE] if dungeon_wide else None,
            switches=image[offsets.SWITCH_STATE] if dungeon_wide else None,
            torches=image[offsets.TORCHES_LIT] if "torches" in has else None,
            shutters_open=image[offsets.OPEN_SHUTTERS] & 0x7F if puzzle else None,
            push=image[offsets.PUSH_COUNTER] if puzzle else None,
            sliding=(
                image[offsets.PUSHED_OBJECT_ENABLED] != 0 and image[offsets.PUSHED_OBJECT_ID] == 0x14
                if "sliding_block" in has
                else None
            ),
        )

    def _sounds(self, image: bytes) -> tuple[int, ...] | None:
        """Sounds started since the last decoded image: the game's own event log."""
        if not self._sound:
            return None
        first, self._tail = self._tail & 15, image[offsets.SOUND_QUEUE_TAIL]
        end = self._tail & 15
        if first == end:
            return ()
        queue = image[offsets.SOUND_QUEUE : offsets.SOUND_QUEUE + 16]
        return tuple(queue[first:end] if first < end else queue[first:] + queue[:end])


def _neighbours(image: bytes, group: int, room: int, progress: Progress, in_dungeon: bool | None) -> Neighbours:
    """Flags of the rooms up, right, down and left; None where no room is."""
    around = _dungeon_rooms(image) if in_dungeon else _map_rooms(room) if group < 2 else (None,) * 4
    flags = [None if number is None else progress.room(group, number) for number in around]
    return flags[0], flags[1], flags[2], flags[3]


def _progress_of(flags: bytes, outdoors: int) -> Progress:
    """Progress from the room flags; the first `outdoors` rooms have no door bits."""
    rooms = flags[: _RUPEE_ROOMS.start] + flags[_RUPEE_ROOMS.stop :]
    inside = rooms[outdoors:]
    return Progress(
        flags=flags,
        rooms_visited=rooms.translate(_HAS_VISITED).count(1),
        items_taken=rooms.translate(_HAS_ITEM).count(1),
        doors_opened=sum(inside.translate(table).count(1) for table in _HAS_DOOR),
        events=rooms.translate(_HAS_EVENT).count(1) + rooms.translate(_HAS_DONE).count(1),
    )


def _map_rooms(room: int) -> tuple[int | None, ...]:
    """Rooms up, right, down and left on a 16 by 16 map; None beyond its edge."""
    row, column = room >> 4, room & 15
    return (
        room - 16 if row else None,
        room + 1 if column < 15 else None,
        room + 16 if row < 15 else None,
        room - 1 if column else None,
    )


def _dungeon_rooms(image: bytes) -> tuple[int | None, ...]:
    """Rooms up, right, down and left on the dungeon's 8 by 8 map of this floor; 0 there means no room."""
    if image[offsets.DUNGEON_FLOOR] >= _FLOORS:
        return (None,) * 4
    position = image[offsets.DUNGEON_MAP_POSITION] & 63
    floor = offsets.DUNGEON_LAYOUT + image[offsets.DUNGEON_FLOOR] * 64
    row, column = position >> 3, position & 7
    places = (
        position - 8 if row else None,
        position + 1 if column < 7 else None,
        position + 8 if row < 7 else None,
        position - 1 if column else None,
    )
    return tuple((image[floor + place] or None) if place is not None else None for place in places)
