"""The facts of a game in progress (items, flags, doors), without an emulator: the state of the planner's search.

Scripts run here as in engine/script.c, so that a plan works in the real game.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from bramble.worlds.milestones import ROOM_PAGES, reached
from bramble.worlds.model import (
    ITEM,
    SECOND_ITEM,
    SOLVED,
    TRADE,
    TREASURES,
    Room,
    RoomId,
    RoomObject,
    Script,
    ScriptCondition,
    Statement,
    World,
)
from shared.game.ram.table import load_table

SMALL_KEY, BOSS_KEY, RUPEES, ESSENCE, ROD, SWORD = (
    TREASURES[name] for name in ("small_key", "boss_key", "rupees", "essence", "rod", "sword")
)
OUTSIDE = 255
LAST_WITH_BOSS_KEY = 7  # the engine holds boss keys in one byte; dungeon 8 has no bit
MANY = 999  # enemies drop rupees without limit, so a hero who can fight can pay any price


@lru_cache(maxsize=1)
def _addresses() -> dict[str, int]:
    return {entry.name: entry.address for entry in load_table()}


def dungeon_of(room: Room) -> int:
    """Index of the dungeon whose keys count in a room; OUTSIDE where no key counts (engine/load.c)."""
    room_id = room.room_id
    if not room.theme.startswith("dungeon"):
        return OUTSIDE
    return 1 + (room_id.room >> 3 & 1) + (room_id.room >> 6 & 2) + (4 if room_id.group == 5 else 0)


@dataclass(slots=True)
class WorldState:
    """Facts. They only grow, except for keys, rupees and what scripts take away."""

    world: World
    owned: set[int] = field(default_factory=set)
    flags: set[int] = field(default_factory=set)
    room_flags: dict[RoomId, int] = field(default_factory=dict)
    doors: set[tuple[RoomId, int]] = field(default_factory=set)
    keys: dict[int, int] = field(default_factory=dict)
    boss_keys: set[int] = field(default_factory=set)
    """Dungeons whose boss key is found."""
    seasons: set[int] = field(default_factory=set)
    rupees: int = 0
    essences: int = 0
    trade: int = 0
    can_fight: bool = False
    milestones: set[str] = field(default_factory=set)

    def copy(self) -> "WorldState":
        """An independent copy for a trial."""
        return WorldState(
            self.world, set(self.owned), set(self.flags), dict(self.room_flags), set(self.doors), dict(self.keys),
            set(self.boss_keys),
            set(self.seasons), self.rupees, self.essences, self.trade, self.can_fight, set(self.milestones),
        )  # fmt: skip

    def fingerprint(self) -> tuple[object, ...]:
        """Everything that affects the next steps. Rupees count only while the hero cannot fight."""
        return (
            frozenset(self.owned), frozenset(self.flags), frozenset(self.room_flags.items()), frozenset(self.doors),
            frozenset(self.boss_keys), frozenset(self.seasons), self.essences, self.trade,
            self.can_fight or self.rupees,
        )  # fmt: skip

    def has_flag(self, room_id: RoomId, room_flags: int) -> bool:
        """Whether a flag of a room is set."""
        return bool(self.room_flags.get(room_id, 0) & room_flags)

    def set_flag(self, room_id: RoomId, room_flags: int) -> None:
        """Set flags of a room."""
        self.room_flags[room_id] = self.room_flags.get(room_id, 0) | room_flags

    def holds(self, condition: ScriptCondition, room_id: RoomId, season: int) -> bool:
        """Whether a condition of a script or object holds in a room."""
        found = {
            "owns": condition.value in self.owned,
            "flag": condition.value in self.flags,
            "solved": self.has_flag(room_id, SOLVED),
            "rupees": (MANY if self.can_fight else self.rupees) >= condition.value,
            "essences": self.essences.bit_count() >= condition.value,
            "season": bool(condition.value >> season & 1),
            "trade": self.trade == condition.value and TRADE in self.owned,
        }[condition.kind]
        return found != condition.negated

    def is_present(self, obj: RoomObject, room_id: RoomId, season: int) -> bool:
        """Whether an object is in its room now."""
        if obj.hidden and not self.has_flag(room_id, SOLVED):
            return False
        return all(self.holds(condition, room_id, season) for condition in obj.only)

    def run_script(self, script: Script, room_id: RoomId, season: int) -> None:
        """Run the first branch whose conditions hold. The answer to every question is yes."""
        for branch in script:
            if all(self.holds(condition, room_id, season) for condition in branch.conditions):
                for step in branch.statements:
                    self._run_statement(step, room_id)
                break
        self.update_milestones()

    def take(self, obj: RoomObject, room_id: RoomId, second: bool, season: int) -> None:
        """Pick up a treasure or open a chest."""
        self.set_flag(room_id, SECOND_ITEM if second else ITEM)
        self.run_script(obj.script, room_id, season)

    def _run_statement(self, step: Statement, room_id: RoomId) -> None:
        if step.word == "give":
            self._give(step.values[0], step.values[1], room_id)
        elif step.word == "take":
            self.owned.discard(step.values[0])
        elif step.word == "pay":
            self.rupees = max(0, self.rupees - step.values[0])
        elif step.word == "set":
            self.flags.add(step.values[0])
        elif step.word == "clear":
            self.flags.discard(step.values[0])
        elif step.word == "solve":
            self.set_flag(room_id, SOLVED)

    def _give(self, number: int, amount: int, room_id: RoomId) -> None:
        self.owned.add(number)
        if number == RUPEES:
            self.rupees += amount
        elif number in (SMALL_KEY, BOSS_KEY):
            self._give_key(number, amount, dungeon_of(self.world.rooms[room_id]))
        elif number == ESSENCE:
            self.essences |= 1 << (amount - 1)
        elif number == TRADE:
            self.trade = amount
        elif number == ROD:
            self.seasons |= {season for season in range(4) if amount >> season & 1}

    def _give_key(self, number: int, amount: int, dungeon: int) -> None:
        if number == SMALL_KEY and dungeon != OUTSIDE:
            self.keys[dungeon] = self.keys.get(dungeon, 0) + amount
        elif number == BOSS_KEY and dungeon <= LAST_WITH_BOSS_KEY:
            self.boss_keys.add(dungeon)

    def update_milestones(self) -> None:
        """Add the milestones that hold now, decided from a RAM image of the facts."""
        ram = self._ram()
        for milestone in self.world.milestones:
            if reached(milestone, lambda address, bank: ram.get(address, 0)):
                self.milestones.add(milestone.name)

    def finished(self) -> bool:
        """Whether every milestone was reached."""
        return len(self.milestones) == len(self.world.milestones)

    def _ram(self) -> dict[int, int]:
        at = _addresses()
        ram = {at["essences"]: self.essences, at["trade_item"]: self.trade}
        for base, numbers in ((at["treasure_flags"], self.owned), (at["global_flags"], self.flags)):
            for number in numbers:
                ram[base + (number >> 3)] = ram.get(base + (number >> 3), 0) | 1 << (number & 7)
        for room_id, room_flags in self.room_flags.items():
            address = at[ROOM_PAGES[room_id.group]] + room_id.room
            ram[address] = ram.get(address, 0) | room_flags
        tens = MANY if self.can_fight else self.rupees
        ram[at["rupees"]] = tens % 10 | tens // 10 % 10 << 4
        ram[at["rupees"] + 1] = tens // 100 % 10
        return ram
