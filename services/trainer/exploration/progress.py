"""What an exploration reached so far, for reports alone: nothing here is read by selection."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Self

from services.trainer.state_archive.archive import ArchiveEntry

CURVE_POINTS: Final = 200  # with more, the results file grows with the steps


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The archive after some steps."""

    steps: int
    cells: int
    rooms: int
    milestones: int


@dataclass(slots=True)
class ExplorationProgress:
    """Counts of the exploration, and the milestones that hold in states of the archive."""

    steps: int = 0
    rounds: int = 0
    rollouts: int = 0
    deaths: int = 0
    wall_s: float = 0.0
    reached_at: dict[int, int] = field(default_factory=dict)
    """Milestone -> steps of the exploration when an entry first had it."""
    curve: list[CurvePoint] = field(default_factory=list)
    _paths: dict[int, int] = field(default_factory=dict)
    """Entry -> bit set of the milestones on its path."""

    @classmethod
    def of(cls, facts: Mapping[str, Any] | None) -> Self:
        """The progress of `facts()`, or that of an exploration not yet begun."""
        if facts is None:
            return cls()
        reached = {int(milestone): steps for milestone, steps in facts["reached_at"].items()}
        return cls(**{**facts, "reached_at": reached, "curve": [CurvePoint(**point) for point in facts["curve"]]})

    def facts(self) -> dict[str, Any]:
        """The progress as data, without the paths, which follow from the entries."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if not one.name.startswith("_")}
        return {**plain, "curve": [asdict(point) for point in self.curve]}

    @property
    def best_path(self) -> int:
        """The most milestones on the path of one entry."""
        return max(map(self.on_path, self._paths), default=0)

    def on_path(self, entry: int) -> int:
        """The number of milestones on the path of this entry."""
        return self._paths[entry].bit_count()

    def add_rollout(self, steps: int, died: bool) -> None:
        """Count one rollout."""
        self.steps += steps
        self.rollouts += 1
        self.deaths += died

    def reach(self, entry: ArchiveEntry, milestones: int) -> None:
        """Note the milestones (bit set) that hold in a new entry; entries come in their order."""
        before = 0 if entry.parent is None else self._paths[entry.parent]
        self._paths[entry.number] = before | milestones
        new = milestones & ~before
        for milestone in range(new.bit_length()):
            if new >> milestone & 1:
                self.reached_at.setdefault(milestone, self.steps)

    def end_round(self, cells: int, rooms: int) -> None:
        """Count a round; every second point of a long curve is dropped."""
        self.rounds += 1
        self.curve.append(CurvePoint(self.steps, cells, rooms, len(self.reached_at)))
        if len(self.curve) > CURVE_POINTS:
            del self.curve[1:-1:2]
