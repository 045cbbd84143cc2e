"""What a hero has and has done, as facts without a machine: the state of the search in proof.py.

Scripts run here as engine/script.c runs them, so that a proof means what the game does.
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
LAST_WITH_BOSS_KEY = 7  # the engine keeps them in a byte, a bit for each dungeon: there is none for the eighth
MANY = 999  # whoever can fight finds gems without end


@lru_cache(maxsize=1)
def _addresses() -> dict[str, int]:
    return {entry.name: entry.address for entry in load_table()}


def dungeon_of(room: Room) -> int:
    """Index of the dungeon for which keys count in a room; OUTSIDE of any they count for nothing (engine/load.c)."""
    room_id = room.room_id
    if not room.theme.startswith("dungeon"):
        return OUTSIDE
    return 1 + (room_id.room >> 3 & 1) + (room_id.room >> 6 & 2) + (4 if room_id.group == 5 else 0)


@dataclass(slots=True)
class WorldState:
    """Facts. They only grow, but for keys, gems and what scripts take away."""

    world: World
    owned: set[int] = field(default_factory=set)
    flags: set[int] = field(default_factory=set)
    room_flags: dict[RoomId, int] = field(default_factory=dict)
    doors: set[tuple[RoomId, int]] = field(default_factory=set)
    keys: dict[int, int] = field(default_factory=dict)
    boss_keys: set[int] = field(default_factory=set)
    """Dungeons whose great key is found."""
    seasons: set[int] = field(default_factory=set)
    rupees: int = 0
    essences: int = 0
    trade: int = 0
    can_fight: bool = False
    milestones: set[str] = field(default_factory=set)

    def copy(self) -> "WorldState":
        """An independent state to try something on."""
        return WorldState(
            self.world, set(self.owned), set(self.flags), dict(self.room_flags), set(self.doors), dict(self.keys),
            set(self.boss_keys),
            set(self.seasons), self.rupees, self.essences, self.trade, self.can_fight, set(self.milestones),
        )  # fmt: skip

    def fingerprint(self) -> tuple[object, ...]:
        """All that may change what can be done next; gems count only as long as they are few."""
        return (
            frozenset(self.owned), frozenset(self.flags), frozenset(self.room_flags.items()), frozenset(self.doors),
            frozenset(self.boss_keys), frozenset(self.seasons), self.essences, self.trade,
            self.can_fight or self.rupees,
        )  # fmt: skip

    def has_flag(self, room_id: RoomId, room_flags: int) -> bool:
        """Whether a room's flag is set."""
        return bool(self.room_flags.get(room_id, 0) & room_flags)

    def set_flag(self, room_id: RoomId, room_flags: int) -> None:
        """Set a room's flag."""
        self.room_flags[room_id] = self.room_flags.get(room_id, 0) | room_flags

    def holds(self, condition: ScriptCondition, room_id: RoomId, season: int) -> bool:
        """One condition of a script or record in a room."""
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
        """Whether a thing is in its room now."""
        if obj.hidden and not self.has_flag(room_id, SOLVED):
            return False
        return all(self.holds(condition, room_id, season) for condition in obj.only)

    def run_script(self, script: Script, room_id: RoomId, season: int) -> None:
        """Do what the first branch does whose tests hold; every question is answered yes."""
        for branch in script:
            if all(self.holds(condition, room_id, season) for condition in branch.conditions):
                for step in branch.statements:
                    self._run_statement(step, room_id)
                break
        self.update_milestones()

    def take(self, obj: RoomObject, room_id: RoomId, second: bool, season: int) -> None:
        """Pick up a treasure, or open a chest."""
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
        """Remember which milestones hold now, read as from the machine's RAM."""
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
