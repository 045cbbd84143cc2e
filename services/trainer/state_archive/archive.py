"""The state archive: the best known path into each cell. Pure: emulator states are kept elsewhere, by their digest.

Entries are immutable and never removed, because later entries continue their paths. A cell that is reached by a better
path gets a new entry.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from services.trainer.state_archive.cell import ArchiveCell
from shared.game.decoding.state import GameState
from shared.game.observation.counters import QUARTERS

WORTHWHILE: Final = 7 / 8  # a path replaces another one of equal health only if it is shorter by an eighth
HEALTH_STEPS: Final = 800
"""Steps that full health is worth in a demonstration; each heart is worth half of what is missing. The second one is
worth 200 steps, the fourth one 50. With health before steps, a demonstration collected hearts for 1,200 steps."""


class PathQuality(NamedTuple):
    """What makes a path into a cell good: the hero's health at its end in whole hearts, and its steps."""

    hearts: int
    steps: int

    @property
    def cost(self) -> float:
        """Steps, and those that the missing hearts are worth."""
        return self.steps + HEALTH_STEPS * 0.5**self.hearts

    @classmethod
    def at(cls, state: GameState, steps: int) -> Self:
        """The quality of a path of so many steps that ends in this state."""
        return cls(-(-state.inventory.health // QUARTERS), steps)


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One path into a cell: the parent's path, then `actions` from the parent's state under the random seed `seed`."""

    number: int
    cell: ArchiveCell
    parent: int | None
    """The entry that this one continues; None: the path begins at the true start."""
    seed: int
    actions: bytes
    quality: PathQuality
    """`steps` count from the true start."""
    digest: str
    """SHA-256 of the emulator's state at the end of the path."""
    counters: bytes = b""
    """The episode's counters, packed as counters/v1: what a reward model reads."""
    follows: int | None = None
    """The path follows its parent's for so many steps from the true start; None: to its end."""


class PathPart(NamedTuple):
    """A part of a trajectory: seed the game's random generator, then make these actions."""

    seed: int
    actions: bytes


def in_one_episode(path: Sequence[PathPart]) -> PathPart:
    """The parts of a path that never seeded the game again, as one; an empty path has no action."""
    return PathPart(path[0].seed if path else 0, b"".join(part.actions for part in path))


def is_better(new: PathQuality, old: PathQuality) -> bool:
    """Whether a path should replace another one into the same cell: more health, or clearly fewer steps."""
    if new.hearts != old.hearts:
        return new.hearts > old.hearts
    return new.steps < old.steps * WORTHWHILE


def is_cheaper(new: PathQuality, old: PathQuality) -> bool:
    """Whether a path is the better demonstration: it costs clearly less."""
    return new.cost < old.cost - old.steps * (1 - WORTHWHILE)


def first_steps(path: tuple[PathPart, ...], steps: int | None) -> tuple[PathPart, ...]:
    """The path up to the moment after so many steps, in the part whose action follows; None: all of it."""
    if steps is None:
        return path
    kept: list[PathPart] = []
    for part in path:
        if steps < len(part.actions):
            return (*kept, PathPart(part.seed, part.actions[:steps]))
        kept.append(part)
        steps -= len(part.actions)
    return path


Better = Callable[[PathQuality, PathQuality], bool]
"""Whether a path of the first quality should replace one of the second."""


class StateArchive:
    """Entries by number, the best entry of each cell, and how often play came through each cell."""

    def __init__(self, better: Better = is_better) -> None:
        """`better` decides which of two paths into a cell is kept."""
        self._better = better
        self.entries: list[ArchiveEntry] = []
        self.visits: Counter[ArchiveCell] = Counter()
        """Rollouts in which a cell was seen."""
        self._best: dict[ArchiveCell, int] = {}

    def __len__(self) -> int:
        return len(self._best)

    def __contains__(self, cell: object) -> bool:
        return cell in self._best

    def best(self) -> Iterator[ArchiveEntry]:
        """The best entry of each cell, in the order in which the cells were found."""
        return (self.entries[number] for number in self._best.values())

    def best_of(self, cell: ArchiveCell) -> ArchiveEntry | None:
        """The best entry of one cell."""
        number = self._best.get(cell)
        return None if number is None else self.entries[number]

    def wants(self, cell: ArchiveCell, quality: PathQuality) -> bool:
        """Whether a path of this quality is the first or a better one into the cell."""
        known = self.best_of(cell)
        return known is None or self._better(quality, known.quality)

    def add(self, entry: ArchiveEntry) -> None:
        """Add the next entry; ValueError if its number or parent is wrong, or if the cell has a path as good."""
        if entry.number != len(self.entries):
            raise ValueError(f"archive entry {entry.number}: the next number is {len(self.entries)}")
        if entry.parent is not None and not 0 <= entry.parent < entry.number:
            raise ValueError(f"archive entry {entry.number}: its parent {entry.parent} is not an earlier entry")
        if not self.wants(entry.cell, entry.quality):
            raise ValueError(f"archive entry {entry.number}: its cell has a path that is as good")
        self.entries.append(entry)
        self._best[entry.cell] = entry.number

    def trajectory(self, entry: ArchiveEntry) -> tuple[PathPart, ...]:
        """The parts of the whole path from the true start to the entry."""
        chain = [entry]
        while (parent := chain[-1].parent) is not None:
            chain.append(self.entries[parent])
        path: tuple[PathPart, ...] = ()
        for one in reversed(chain):
            path = (*first_steps(path, one.follows), PathPart(one.seed, one.actions))
        return path

    def rooms(self) -> set[tuple[int, int]]:
        """Group and number of each room with a cell."""
        return {(cell.group, cell.room) for cell in self._best}
