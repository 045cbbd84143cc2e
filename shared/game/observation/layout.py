"""The observation layout obs/v1 as data: 128 features in order, each in [-1, 1], with its meaning.

Every checkpoint, segment and reward model records the version; a changed layout needs a new version. A feature whose
capability the game lacks is `UNKNOWN`, a value that a known feature never has.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

VERSION: Final = "obs/v1"
SIZE: Final = 128
UNKNOWN: Final = -1.0


class Feature(NamedTuple):
    """One number. It is known only if the game has `capability`."""

    name: str
    block: str
    meaning: str
    capability: str = "core"


def _block(block: str, *features: tuple[str, str] | tuple[str, str, str]) -> tuple[Feature, ...]:
    return tuple(Feature(feature[0], block, *feature[1:]) for feature in features)


def _four(stem: str, meaning: str, capability: str = "core") -> tuple[tuple[str, str, str], ...]:
    return tuple((f"{stem}_{side}", meaning.format(side=side), capability) for side in ("up", "right", "down", "left"))


BLOCKS: Final[tuple[tuple[Feature, ...], ...]] = (
    _block(
        "hero",
        ("x", "column in the room, -1 left edge, 1 right edge"),
        ("y", "row in the room, -1 upper edge, 1 lower edge"),
        ("tile_x", "place within the tile, -1 left, 1 right"),
        ("tile_y", "place within the tile, -1 top, 1 bottom"),
        *_four("facing", "1 if the hero faces {side}"),
        ("moved_x", "pixels moved to the right in this step, by 8"),
        ("moved_y", "pixels moved down in this step, by 8"),
        ("invincible", "1 while he cannot be hurt"),
        ("knocked_back", "1 while he is thrown back"),
    ),
    _block(
        "body",
        ("airborne", "1 while jumping", "jump"),
        ("swimming", "1 in water", "swim"),
        ("holding", "1 while carrying something", "grab"),
    ),
    _block(
        "room",
        ("area_overworld", "1 in room group 0"),
        ("area_underworld", "1 in room group 1"),
        ("area_tree", "1 in room group 2"),
        ("area_indoors", "1 in room group 3"),
        ("area_dungeon", "1 in room groups 4 and 5: dungeons and caves"),
        ("area_side_view", "1 in room groups 6 and 7"),
        *((f"room_bit_{bit}", f"bit {bit} of the room's number, as -1 or 1") for bit in range(8)),
        ("map_row", "row on the overworld or dungeon map, -1 top, 1 bottom"),
        ("map_column", "column on the overworld or dungeon map, -1 left, 1 right"),
    ),
    _block(
        "dungeon",
        ("in_dungeon", "1 in a dungeon", "dungeon"),
        ("dungeon_number", "number of the dungeon plus 1, by 12; 0 outside", "dungeon"),
    ),
    _block(
        "season",
        *((f"season_{name}", f"1 in {name}", "season") for name in ("spring", "summer", "autumn", "winter")),
    ),
    _block(
        "health",
        ("health", "share of the full health"),
        ("max_health", "hearts when full, by 16"),
        ("low_health", "1 with one heart or less"),
    ),
    _block(
        "items",
        ("rupees", "money on a logarithmic scale, 1 at 999", "money"),
        ("heart_pieces", "pieces towards the next heart, by 4", "heart_pieces"),
        ("sword", "level of the sword, by 3", "sword"),
        ("shield", "level of the shield, by 3", "shield"),
        ("bombs", "bombs, by 30", "bombs"),
        ("feather", "level of the feather, by 2", "jump"),
        ("bracelet", "1 if owned", "inventory"),
        ("flippers", "1 if owned", "inventory"),
        ("season_rod", "1 if owned", "inventory"),
        ("seeds", "seeds of all kinds, by 99", "seeds"),
        ("essences", "essences, by 8", "essences"),
        ("treasures", "different treasures owned, by 32", "inventory"),
    ),
    _block(
        "keys",
        ("small_keys", "small keys of this dungeon, by 4; 0 outside", "dungeon"),
        ("boss_key", "1 if the boss key of this dungeon is owned", "dungeon_items"),
        ("dungeon_map", "1 if the map of this dungeon is owned", "dungeon_items"),
        ("compass", "1 if the compass of this dungeon is owned", "dungeon_items"),
    ),
    _block(
        "screen",
        ("control", "1 when the hero obeys"),
        ("dialog", "1 while a text is shown", "dialog"),
        ("dialog_waiting", "1 while the text waits for a button", "dialog"),
        ("dialog_choosing", "1 while an answer has to be chosen", "choice"),
        ("menu", "1 while a menu is open", "menu"),
        ("transition", "1 between two rooms"),
        ("cutscene", "1 in a scripted scene"),
        ("dying", "1 when dying"),
    ),
    _block(
        "puzzle",
        ("enemies_left", "enemies still to be beaten in this room, by 8"),
        ("buttons_down", "floor buttons held down, by 4", "puzzle"),
        ("levers", "levers and orbs switched in this dungeon, by 8", "puzzle_dungeon"),
        ("torches", "torches lit in this room, by 8", "torches"),
        ("shutters_open", "open shutters, by 4", "puzzle"),
        ("pushing", "how far the push against a block or door is, 0 to 1", "puzzle"),
        ("solved", "1 when something was solved or unlocked in the last 16 steps", "sound"),
    ),
    _block(
        "enemies",
        ("enemies", "enemies in the room, by 8"),
        *(
            feature
            for place in ("nearest", "second")
            for feature in (
                (f"{place}_enemy_x", "pixels to the right, by 80; 0 without an enemy"),
                (f"{place}_enemy_y", "pixels down, by 64; 0 without an enemy"),
                (f"{place}_enemy_near", "1 touching, 0 at 160 pixels or absent"),
                (f"{place}_enemy_health", "health, by 8"),
                (f"{place}_enemy_kind", "number of its kind, by 128; 0 without an enemy"),
            )
        ),
    ),
    _block(
        "people",
        ("people", "people and things that answer, by 4"),
        ("nearest_person_x", "pixels to the right, by 80"),
        ("nearest_person_y", "pixels down, by 64"),
        ("nearest_person_near", "1 touching, 0 at 160 pixels or absent"),
        ("nearest_person_kind", "number of its kind, by 128"),
    ),
    _block(
        "things",
        ("nearest_thing_x", "thing to pick up: pixels to the right, by 80"),
        ("nearest_thing_y", "pixels down, by 64"),
        ("nearest_thing_near", "1 touching, 0 at 160 pixels or absent"),
        ("nearest_danger_x", "flying danger: pixels to the right, by 80"),
        ("nearest_danger_y", "pixels down, by 64"),
        ("nearest_danger_near", "1 touching, 0 at 160 pixels or absent"),
    ),
    _block(
        "walls",
        *_four("free", "free cells of 8 pixels {side}, by 20"),
        *_four("exit", "place of the opening in the {side} side, 0 to 1; -1 without one"),
        ("ahead_solid", "share of the tile ahead that is solid"),
        ("ahead_hazard", "1 if the tile ahead is a hole or water"),
        ("ahead_tile_high", "upper half of the number of the tile ahead, by 15"),
        ("ahead_tile_low", "lower half of the number of the tile ahead, by 15"),
    ),
    _block("neighbours", *_four("visited", "room {side}: 1 visited, 0 not, -1 none or unknown")),
    _block(
        "frontier",
        *_four("unseen", "1 next to a tile {side} not seen in this episode, falling with distance; 0 none in line"),
        ("room_seen", "share of the room's tiles seen in this episode"),
        ("rooms_seen", "rooms seen in this episode, logarithmic, 1 at 255"),
    ),
    _block(
        "trace",
        ("since_tile", "steps since the last new tile, logarithmic, 1 at 4095"),
        ("since_room", "steps since the last new room, logarithmic, 1 at 65535"),
        ("recent_moves", "share of the last 16 actions that were directions"),
        ("recent_presses", "share of the last 16 actions that were A or B"),
        ("streak", "how often the last action was repeated, by 16"),
        *((f"last_{name}", f"1 if the last action was {name}") for name in
          ("wait", "up", "down", "left", "right", "a", "b", "start")),
    ),
)  # fmt: skip

FEATURES: Final[tuple[Feature, ...]] = tuple(feature for block in BLOCKS for feature in block)
INDEX: Final[dict[str, int]] = {feature.name: place for place, feature in enumerate(FEATURES)}

if len(FEATURES) != SIZE or len(INDEX) != SIZE:
    raise ValueError(f"layout {VERSION} has {len(FEATURES)} features with {len(INDEX)} names, it must have {SIZE}")


def _marks(name: str, novelty: Collection[str], cells: Collection[str]) -> str:
    return " ".join(mark for mark, names in (("c", cells), ("x", novelty)) if name in names)


def markdown(novelty: Collection[str], cells: Collection[str]) -> str:
    """The table of docs/observation.md. `novelty`, `cells`: names of the features that RND sees and that make cells."""
    head = (
        f"# The observation `{VERSION}`\n\nGenerated from `shared/game/observation/layout.py` by "
        "`python -m shared.game.generate`: do not edit.\n\n"
        f"{SIZE} features, float32, each in [-1, 1]. If the game lacks its capability, a feature is always "
        f"{UNKNOWN:g}. With a capability other than `core` it never has that value.\n\n"
        "The observation `obs/v2`, the default of new runs, is these features followed by the event counters of the "
        "episode ([counters/v1](counters.md)): 148 numbers. Segments hold both apart.\n\n"
        "The observation `obs/v3` is `obs/v2` followed by 213 numbers that look alike in every world: a window of "
        "7 x 7 tiles around the hero (solid, how rare in the room, not yet stood on, what is there), the lasting flags "
        "of the room, the step of the trading sequence, and the likeness of the room: the mean over its tiles of eight "
        "fixed signs of each metatile (`shared/game/observation/with_surroundings.py`). Segments do not hold them, so "
        "judged segments cannot be imitated with it.\n\n"
        "The observation `obs/v4` is `obs/v3` followed by 233 flags: for each counter of what the game does not undo, "
        "one for each count up to 16, and 16 for the hero's money (`shared/game/observation/with_progress.py`). "
        "Segments do not hold them either.\n\n"
        "A run with guidance appends ten numbers that show the present suggestion ([guidance](planner.md#guidance)); "
        "segments do not hold them.\n\n"
        "Curiosity counts visits of cells (`cells/v1`): the features with a c, coarse in place and exact in the rest "
        f"(`shared/game/observation/cells.py`). With `novelty/v1` RND sees the {len(novelty)} features with an x: "
        "places, lasting possessions and the state of puzzles (`shared/game/observation/novelty.py`).\n\n"
        "| index | name | meaning | capability | curiosity |\n|---|---|---|---|---|\n"
    )
    lines = [
        f"| {n} | `{f.name}` | {f.meaning} | {f.capability} | {_marks(f.name, novelty, cells)} |"
        for n, f in enumerate(FEATURES)
    ]
    return head + "\n".join(lines) + "\n"
