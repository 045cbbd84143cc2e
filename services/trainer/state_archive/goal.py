"""The goal of a backward curriculum: the most valuable cell of the archive, and when it is reached. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from services.trainer.state_archive.archive import ArchiveEntry, StateArchive
from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.selection import Score
from shared.game.decoding.state import GameState
from shared.game.observation.counters import LASTING, UNKNOWN_COUNT

CHESTS: Final = LASTING.index("chests")
NEEDLESS: Final = frozenset({CHESTS, LASTING.index("heart_containers")})
"""A chest that raises no other counter held money or health. The money that a path pays is asked for anyway."""


class ArchiveGoal(NamedTuple):
    """To be in the room of a cell with at least its lasting counters, and with at least so many rupees."""

    cell: ArchiveCell
    rupees: int = 0

    def reached_in(self, cell: ArchiveCell, rupees: int) -> bool:
        """Whether an episode that is in this cell, with so much money, has reached the goal."""
        place = (cell.group, cell.room) == (self.cell.group, self.cell.room)
        return place and rupees >= self.rupees and achieves(cell.counters, self.cell.counters)


class PathGoal(NamedTuple):
    """A part of a path ends here: with at least these lasting counters, and the rupees that the rest of it pays."""

    counters: tuple[int, ...]
    rupees: int = 0

    def reached(self, counters: tuple[int, ...], rupees: int) -> bool:
        """Whether an episode with these lasting counters and so much money has reached the goal."""
        return achieves(counters, self.counters) and rupees >= self.rupees


class TrailPoint(NamedTuple):
    """A step at which a trajectory enters a coarse tile, or hits an enemy."""

    step: int
    place: tuple[int, int, int, int]
    """Group, room, column and row."""
    enemy_health: int | None = None
    """What the room's enemies have left together after a hit; None: the tile is entered."""


class TrajectoryLeg(NamedTuple):
    """The steps of a trajectory from `begin` up to `end`, where its goal is reached."""

    begin: int
    end: int
    goal: ArchiveGoal
    on_the_way: bool = False
    """No lasting counter rises at the end: the goal is a place on the way to that of a later leg."""
    mastered: bool = True
    """The policy reaches the goal from the beginning of the leg: an episode that comes to it goes on."""
    trail: tuple[TrailPoint, ...] = ()
    """The coarse tiles on the way to the goal, in their order."""
    gains: tuple[int, ...] = ()
    """How far each lasting counter rises at the end; empty if it is unknown, or if none does."""


def enemy_health_of(state: GameState) -> int:
    """What the enemies in the room have left together."""
    return sum(enemy.health for enemy in state.enemies)


def rupees_of(state: GameState) -> int:
    """The hero's money; 0 in a game that does not say."""
    return state.inventory.rupees or 0


def rupees_needed(owned: Sequence[int], counters: Sequence[tuple[int, ...]]) -> list[int]:
    """How much money the rest of a path needs at each of its moments, if it gains what it did there.

    `owned` and `counters` are money and lasting counters when the hero last had control. Nothing but payments takes
    money. A payment is needed if a counter rose with it; one that achieved nothing may be left out.
    """
    needed = [0] * len(owned)
    for place in reversed(range(len(owned) - 1)):
        change = owned[place] - owned[place + 1]
        paid = change if change < 0 or counters[place] != counters[place + 1] else 0
        needed[place] = max(0, needed[place + 1] + paid)
    return needed


def achieves(counters: tuple[int, ...], goal: tuple[int, ...]) -> bool:
    """Whether lasting counters are at least those of a goal."""
    return all(own >= asked for own, asked in zip(counters, goal, strict=True))


def rises(before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
    """How far each lasting counter has risen."""
    return tuple(max(0, later - earlier) for earlier, later in zip(before, after, strict=True))


def next_goal(archive: StateArchive, score: Score | None, reached: int | None) -> ArchiveEntry | None:
    """The entry of the most valuable cell, of equal ones that with the shortest path; None if none is worth more
    than the entry `reached`, or than the first one.

    Without a score the value is the sum of the lasting counters: what the path achieved for good. After `reached`, an
    entry must also have achieved more, not counting money and health: the score of a place changes with every model.
    """
    if not len(archive):
        return None
    worth: Score = score or achieved
    former = archive.entries[reached or 0]
    entries = [one for one in archive.best() if reached is None or _progress(one) > _progress(former)]
    best = max(entries, key=lambda entry: (worth(entry), -entry.quality.steps), default=None)
    return best if best is not None and worth(best) > worth(former) and best.quality.steps else None


def _progress(entry: ArchiveEntry) -> int:
    """What a path achieved, without what gives money or health alone."""
    counters = entry.cell.counters
    return achieved_in([count for place, count in enumerate(counters) if place not in NEEDLESS])


def achieved(entry: ArchiveEntry) -> float:
    """What the path to an entry achieved, as a score."""
    return float(achieved_in(entry.cell.counters))


def achieved_in(counters: Sequence[int]) -> int:
    """The sum of lasting counters, without those that the game lacks."""
    return sum(count for count in counters if count != UNKNOWN_COUNT)
