"""Event counters of an episode, counters/v1: what the reward model sees.

Each counter starts at 0 with the episode and never falls, so progress that a judge rated stays visible: a spent key
leaves `keys_found` and raises `keys_used`. A counter of something that the game can repeat (enemies return, shops sell
again) rises at most `REPEATS` times in each room; without that limit an agent could farm the reward.
"""

from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.game.decoding.names import SUPPLIES
from shared.game.decoding.state import GameState, Inventory, RoomKey
from shared.game.observation.layout import UNKNOWN
from shared.game.observation.trace import EpisodeTrace

VERSION: Final = "counters/v1"
REPEATS: Final = 4  # the hand-written reward terms have the same limit for enemies
UNKNOWN_COUNT: Final = 0xFFFF  # recorded where the game cannot say; no counter gets so far
QUARTERS: Final = 4


class Counter(NamedTuple):
    """One counter. `most` is the count at which its feature reaches 1; `capability` is what the game must have."""

    name: str
    most: int
    meaning: str
    capability: str = "core"


COUNTERS: Final[tuple[Counter, ...]] = (
    Counter("rooms", 255, "different rooms entered after the first"),
    Counter("tiles", 4_095, "different tiles stood on after the first"),
    Counter("items", 31, "treasures owned for the first time, money and hearts excepted", "inventory"),
    Counter("sword_levels", 3, "levels that the sword gained", "sword"),
    Counter("heart_containers", 15, "heart containers gained"),
    Counter("chests", 63, "treasures taken from rooms permanently"),
    Counter("keys_found", 31, "small keys picked up", "dungeon"),
    Counter("keys_used", 31, "small keys spent on locks", "dungeon"),
    Counter("dungeon_items", 31, "boss keys, maps and compasses gained", "dungeon_items"),
    Counter("doors", 127, "sides of doors opened permanently"),
    Counter("solved", 63, "rooms whose puzzle, block, switch, boss or gate was solved permanently"),
    Counter("buttons", 63, "floor buttons pressed for the first time", "puzzle"),
    Counter("levers", 63, "levers and orbs switched for the first time", "puzzle_dungeon"),
    Counter("story", 127, "events of the story that the game noted", "flags"),
    Counter("texts", 127, "texts read for the first time", "dialog"),
    Counter("payments", 31, f"payments, at most {REPEATS} in each room", "money"),
    Counter("trades", 31, "steps of the trading sequence", "trade"),
    Counter("enemies", 255, f"enemies defeated, at most {REPEATS} in each room", "stats"),
    Counter("dungeons", 15, "different dungeons entered", "dungeon"),
    Counter("essences", 8, "essences gained", "essences"),
)
NAMES: Final = tuple(counter.name for counter in COUNTERS)
SIZE: Final = len(COUNTERS)
INDEX: Final = {name: place for place, name in enumerate(NAMES)}
LASTING: Final = (
    "items", "sword_levels", "heart_containers", "chests", "keys_found", "keys_used", "dungeon_items", "doors",
    "solved", "levers", "story", "trades", "dungeons", "essences",
)  # fmt: skip
"""Counters of events that the game does not undo. Rooms, tiles, texts, enemies and floor buttons are left out, because
they differ between almost any two paths; payments, because what is bought counts by itself, or it is used up."""
_PACK: Final = Struct(f"<{SIZE}H").pack
_MOST: Final = np.array([counter.most for counter in COUNTERS], np.float32)
_SCALE: Final = np.log1p(_MOST)


Switch = tuple[str, RoomKey | int | None, int]
"""A button of a room, an orb or a lever of a dungeon, with the number of its bit."""
ORBS: Final = "levers"  # what saved memories call an orb: they were written before other levers counted


class CounterMemory(NamedTuple):
    """What the counters of an episode remember, to continue it from a saved state."""

    values: dict[str, int]
    owned: list[int]
    texts: list[int]
    switched: list[Switch]
    dungeons: list[int | None]
    repeats: list[tuple[str, RoomKey, int]]


class EpisodeCounters:
    """The counters of one episode, for one environment."""

    def __init__(self, state: GameState, trace: EpisodeTrace, capabilities: frozenset[str]) -> None:
        """Start at `state`. What the hero has by then is not counted; `trace` is at its beginning, too."""
        self.values = dict.fromkeys(NAMES, 0)
        self._unknown = tuple(c.name for c in COUNTERS if c.capability not in capabilities)
        self._first_rooms, self._first_tiles = len(trace.rooms), trace.tiles
        self._owned = SUPPLIES | (state.inventory.treasures or frozenset())
        self._texts = set() if state.dialog is None else {state.dialog.text}
        self._switched: set[Switch] = set()
        self._dungeons = {state.dungeon} if state.in_dungeon else set()
        self._repeats: dict[tuple[str, RoomKey], int] = {}
        self.packed = b""
        self._pack()

    def memory(self) -> CounterMemory:
        """What continues these counters from a saved state."""
        return CounterMemory(
            dict(self.values),
            sorted(self._owned),
            sorted(self._texts),
            [*self._switched],
            [*self._dungeons],
            [(name, room, count) for (name, room), count in self._repeats.items()],
        )

    def restore(self, memory: CounterMemory, trace: EpisodeTrace) -> None:
        """Continue the counters of an earlier episode; `trace` continues it already."""
        self.values.update(memory.values)
        self._first_rooms = len(trace.rooms) - memory.values["rooms"]
        self._first_tiles = trace.tiles - memory.values["tiles"]
        self._owned |= set(memory.owned)
        self._texts |= set(memory.texts)
        self._switched |= set(memory.switched)
        self._dungeons |= set(memory.dungeons)
        self._repeats = {(name, room): count for name, room, count in memory.repeats}
        self._pack()

    def step(self, previous: GameState, state: GameState, trace: EpisodeTrace) -> None:
        """Count what the step from `previous` to `state` brought; `trace` has seen the step."""
        if state.scene is previous.scene and not trace.new_tile:
            return
        values = self.values
        values["rooms"] = len(trace.rooms) - self._first_rooms
        values["tiles"] = trace.tiles - self._first_tiles
        if state.scene is not previous.scene:
            self._count_scene(previous, state)
        self._pack()

    def _count_scene(self, previous: GameState, state: GameState) -> None:
        values = self.values
        if state.inventory is not previous.inventory:
            self._count_inventory(previous.inventory, state)
        if state.progress is not previous.progress:
            old, new = previous.progress, state.progress
            values["chests"] += max(0, new.items_taken - old.items_taken)
            values["doors"] += max(0, new.doors_opened - old.doors_opened)
            values["solved"] += max(0, new.events - old.events)
        if state.dialog is not None and state.dialog.text not in self._texts:
            self._texts.add(state.dialog.text)
            values["texts"] += 1
        if state.in_dungeon and state.dungeon not in self._dungeons:
            self._dungeons.add(state.dungeon)
            values["dungeons"] += 1
        self._count_switches(previous, state)

    def _count_inventory(self, old: Inventory, state: GameState) -> None:
        values, new = self.values, state.inventory
        gained = (new.treasures or frozenset()) - self._owned
        self._owned |= gained
        values["items"] += len(gained)
        values["sword_levels"] += max(0, (new.sword or 0) - (old.sword or 0))
        values["heart_containers"] += max(0, new.max_health // QUARTERS - old.max_health // QUARTERS)
        values["dungeon_items"] += sum(
            _new_bits(getattr(old, name), getattr(new, name)) for name in ("boss_keys", "maps", "compasses")
        )
        values["story"] += _new_bits(_number(old.global_flags), _number(new.global_flags))
        values["trades"] += int((new.trade or 0) > (old.trade or 0))
        values["essences"] += _new_bits(old.essences, new.essences)
        for before, after in zip(old.small_keys or b"", new.small_keys or b"", strict=False):
            values["keys_found"] += max(0, after - before)
            values["keys_used"] += max(0, before - after)
        self._repeat("payments", state.key, int((new.rupees or 0) < (old.rupees or 0)))
        self._repeat("enemies", state.key, (new.kills or 0) - (old.kills or 0))

    def _count_switches(self, previous: GameState, state: GameState) -> None:
        if state.puzzle is previous.puzzle or state.key != previous.key:
            return
        old, new = previous.puzzle, state.puzzle
        for name, kind, before, after, place in (
            ("buttons", "buttons", old.triggers, new.triggers, state.key),
            ("levers", ORBS, old.toggles, new.toggles, state.dungeon),
            ("levers", "switches", old.switches, new.switches, state.dungeon),
        ):
            if before is None or after is None or before == after:
                continue
            changed = before ^ after if name == "levers" else after & ~before
            for bit in range(changed.bit_length()):
                mark = (kind, place, bit)
                if changed >> bit & 1 and mark not in self._switched:
                    self._switched.add(mark)
                    self.values[name] += 1

    def _repeat(self, name: str, room: RoomKey, gain: int) -> None:
        """Count at most REPEATS events of this kind in one room."""
        if gain <= 0:
            return
        counted = self._repeats.get((name, room), 0)
        gain = min(gain, REPEATS - counted)
        self._repeats[name, room] = counted + gain
        self.values[name] += gain

    def _pack(self) -> None:
        values = self.values
        for name in self._unknown:
            values[name] = UNKNOWN_COUNT
        self.packed = _PACK(*values.values())


def features(counts: NDArray[Any]) -> NDArray[np.float32]:
    """Reward-model inputs float32 (..., SIZE) in [0, 1] of `counts` uint16 (..., SIZE): log(1 + n) / log(1 + most).

    An unknown counter gives UNKNOWN (-1) throughout. The logarithm keeps the first event of a kind the largest.
    """
    numbers = counts.astype(np.float32)
    scaled = np.log1p(np.minimum(numbers, _MOST)) / _SCALE
    return np.where(counts == UNKNOWN_COUNT, np.float32(UNKNOWN), scaled).astype(np.float32)


def markdown() -> str:
    """The table of docs/counters.md."""
    head = (
        f"# The reward model's view `{VERSION}`\n\nGenerated from `shared/game/observation/counters.py` by "
        "`python -m shared.game.generate`: do not edit.\n\n"
        f"{SIZE} event counters of an episode. Each starts at 0, never falls, and enters the reward model as "
        "log(1 + n) / log(1 + most), float32 in [0, 1]. A counter whose capability the game lacks is "
        f"{UNKNOWN:g} throughout.\n\n"
        "| index | name | meaning | most | capability |\n|---|---|---|---|---|\n"
    )
    lines = [f"| {n} | `{c.name}` | {c.meaning} | {c.most} | {c.capability} |" for n, c in enumerate(COUNTERS)]
    return head + "\n".join(lines) + "\n"


def _number(flags: bytes | None) -> int:
    return int.from_bytes(flags or b"", "little")


def _new_bits(old: int | None, new: int | None) -> int:
    """How many bits were set."""
    return ((new or 0) & ~(old or 0)).bit_count()
