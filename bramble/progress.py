"""What a hero has and has done, as facts without a machine: the state of the search in proof.py.

Scripts run here as engine/script.c runs them, so that a proof means what the game does.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from bramble.milestones import ROOM_PAGES, reached
from bramble.model import ITEM, SECOND_ITEM, SOLVED, TRADE, TREASURES, Place, Room, Script, Step, Test, Thing, World
from shared.game.table import load_table

SMALL_KEY, BOSS_KEY, RUPEES, ESSENCE, ROD, SWORD = (
    TREASURES[name] for name in ("small_key", "boss_key", "rupees", "essence", "rod", "sword")
)
OUTSIDE = 255
LAST_WITH_GREAT_KEY = 7  # the engine keeps them in a byte, a bit for each dungeon: there is none for the eighth
MANY = 999  # whoever can fight finds gems without end


@lru_cache(maxsize=1)
def _addresses() -> dict[str, int]:
    return {entry.name: entry.address for entry in load_table()}


def dungeon_of(room: Room) -> int:
    """Index of the dungeon for which keys count in a room; OUTSIDE of any they count for nothing (engine/load.c)."""
    place = room.place
    if not room.theme.startswith("dungeon"):
        return OUTSIDE
    return 1 + (place.room >> 3 & 1) + (place.room >> 6 & 2) + (4 if place.group == 5 else 0)


@dataclass(slots=True)
class Progress:
    """Facts. They only grow, but for keys, gems and what scripts take away."""

    world: World
    owned: set[int] = field(default_factory=set)
    flags: set[int] = field(default_factory=set)
    bits: dict[Place, int] = field(default_factory=dict)
    doors: set[tuple[Place, int]] = field(default_factory=set)
    keys: dict[int, int] = field(default_factory=dict)
    great_keys: set[int] = field(default_factory=set)
    """Dungeons whose great key is found."""
    seasons: set[int] = field(default_factory=set)
    rupees: int = 0
    essences: int = 0
    trade: int = 0
    fights: bool = False
    milestones: set[str] = field(default_factory=set)

    def copy(self) -> "Progress":
        """An independent state to try something on."""
        return Progress(
            self.world, set(self.owned), set(self.flags), dict(self.bits), set(self.doors), dict(self.keys),
            set(self.great_keys),
            set(self.seasons), self.rupees, self.essences, self.trade, self.fights, set(self.milestones),
        )  # fmt: skip

    def fingerprint(self) -> tuple[object, ...]:
        """All that may change what can be done next; gems count only as long as they are few."""
        return (
            frozenset(self.owned), frozenset(self.flags), frozenset(self.bits.items()), frozenset(self.doors),
            frozenset(self.great_keys), frozenset(self.seasons), self.essences, self.trade, self.fights or self.rupees,
        )  # fmt: skip

    def has(self, place: Place, bits: int) -> bool:
        """Whether a room's flag is set."""
        return bool(self.bits.get(place, 0) & bits)

    def mark(self, place: Place, bits: int) -> None:
        """Set a room's flag."""
        self.bits[place] = self.bits.get(place, 0) | bits

    def holds(self, test: Test, place: Place, season: int) -> bool:
        """One condition of a script or record in a room."""
        found = {
            "owns": test.value in self.owned,
            "flag": test.value in self.flags,
            "solved": self.has(place, SOLVED),
            "rupees": (MANY if self.fights else self.rupees) >= test.value,
            "essences": self.essences.bit_count() >= test.value,
            "season": bool(test.value >> season & 1),
            "trade": self.trade == test.value and TRADE in self.owned,
        }[test.kind]
        return found != test.negated

    def there(self, thing: Thing, place: Place, season: int) -> bool:
        """Whether a thing is in its room now."""
        if thing.hidden and not self.has(place, SOLVED):
            return False
        return all(self.holds(test, place, season) for test in thing.only)

    def run(self, script: Script, place: Place, season: int) -> None:
        """Do what the first branch does whose tests hold; every question is answered yes."""
        for branch in script:
            if all(self.holds(test, place, season) for test in branch.tests):
                for step in branch.steps:
                    self._do(step, place)
                break
        self.note_milestones()

    def take(self, thing: Thing, place: Place, second: bool, season: int) -> None:
        """Pick up a treasure, or open a chest."""
        self.mark(place, SECOND_ITEM if second else ITEM)
        self.run(thing.script, place, season)

    def _do(self, step: Step, place: Place) -> None:
        if step.word == "give":
            self._give(step.values[0], step.values[1], place)
        elif step.word == "take":
            self.owned.discard(step.values[0])
        elif step.word == "pay":
            self.rupees = max(0, self.rupees - step.values[0])
        elif step.word == "set":
            self.flags.add(step.values[0])
        elif step.word == "clear":
            self.flags.discard(step.values[0])
        elif step.word == "solve":
            self.mark(place, SOLVED)

    def _give(self, number: int, amount: int, place: Place) -> None:
        self.owned.add(number)
        if number == RUPEES:
            self.rupees += amount
        elif number in (SMALL_KEY, BOSS_KEY):
            self._give_key(number, amount, dungeon_of(self.world.rooms[place]))
        elif number == ESSENCE:
            self.essences |= 1 << (amount - 1)
        elif number == TRADE:
            self.trade = amount
        elif number == ROD:
            self.seasons |= {season for season in range(4) if amount >> season & 1}

    def _give_key(self, number: int, amount: int, dungeon: int) -> None:
        if number == SMALL_KEY and dungeon != OUTSIDE:
            self.keys[dungeon] = self.keys.get(dungeon, 0) + amount
        elif number == BOSS_KEY and dungeon <= LAST_WITH_GREAT_KEY:
            self.great_keys.add(dungeon)

    def note_milestones(self) -> None:
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
        for place, bits in self.bits.items():
            address = at[ROOM_PAGES[place.group]] + place.room
            ram[address] = ram.get(address, 0) | bits
        tens = MANY if self.fights else self.rupees
        ram[at["rupees"]] = tens % 10 | tens // 10 % 10 << 4
        ram[at["rupees"] + 1] = tens // 100 % 10
        return ram
