"""The trajectories of a run's archive: stored for the orders that name them, read and played for the epochs that learn.

A trajectory that several orders name is played once in a driver's life.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from services.trainer.documents import StoredObject
from services.trainer.other_ways.fights import WonFight
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.other_ways.trail_map import TrailMap
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.restarts.trajectory import Trajectory, read_trajectory, write_trajectory
from services.trainer.restarts.trajectory_player import (
    TrajectoryOutline,
    TrajectoryPlayer,
    TrajectoryRows,
    TrajectoryStart,
)
from services.trainer.state_archive.archive import ArchiveEntry
from shared.contracts.epoch import TrajectoryRef
from shared.contracts.ids import Digest


class TrajectoryStore(Protocol):
    """Where trajectories are kept; driver_store.DriverStore is one."""

    def read(self, reference: StoredObject) -> bytes:
        """The object, checked against its digest."""
        ...

    def save_trajectory(self, data: bytes, entry: int, steps: int) -> TrajectoryRef:
        """Store a trajectory of so many steps to an entry."""
        ...


class ArchiveTrajectories:
    """Stores, reads and plays the trajectories of one run. Close it to end its emulator."""

    def __init__(self, store: TrajectoryStore, make: Callable[[], TrajectoryPlayer]) -> None:
        """`make` builds the player when the first trajectory is played."""
        self._store, self._make = store, make
        self._player: TrajectoryPlayer | None = None
        self._rows: dict[Digest, TrajectoryRows] = {}
        self._outlines: dict[Digest, TrajectoryOutline] = {}
        self._fights: dict[Digest, list[WonFight]] = {}
        self._trails: dict[Digest, TrailMap] = {}

    def save(self, archive: RunArchive, entries: Iterable[ArchiveEntry]) -> list[TrajectoryRef]:
        """Store the trajectories to these entries, each the best of its cell. One without actions shows nothing."""
        return [self._save(archive, entry) for entry in entries if entry.quality.steps]

    def rows(self, references: Sequence[TrajectoryRef]) -> list[TrajectoryRows]:
        """What the policy would have seen and done on these trajectories.

        Raises NotFound, DigestMismatch, ContractError or ReplayMismatch, with the object's name, if one is damaged.
        """
        found = {one.digest: self._rows.get(one.digest) or self._played(one) for one in references}
        self._rows = found  # those of the newest order alone: each has some 600 bytes a step
        return [found[one.digest] for one in references]

    def starts(
        self, reference: TrajectoryRef, steps: Mapping[int, int]
    ) -> tuple[Trajectory, dict[int, TrajectoryStart]]:
        """The trajectory, and the states in which episodes begin: for each point that of its step. Raises as `rows`."""
        trajectory = self._read(reference)
        return trajectory, self._started().starts(trajectory, reference.key, steps)

    def outline(self, reference: TrajectoryRef) -> TrajectoryOutline:
        """The legs of the trajectory, and where the hero has control. Raises as `rows` does."""
        if reference.digest not in self._outlines:
            self._outlines = {reference.digest: self._started().outline(self._read(reference), reference.key)}
        return self._outlines[reference.digest]

    def won_fights(self, reference: TrajectoryRef) -> list[WonFight]:
        """The trajectory's fights, won in other ways. Raises as `rows` does."""
        if reference.digest not in self._fights:
            trajectory, legs = self._read(reference), self.outline(reference).legs
            self._fights = {reference.digest: self._started().won_fights(trajectory, reference.key, legs)}
        return self._fights[reference.digest]

    def recoveries(self, reference: TrajectoryRef) -> list[LegPass]:
        """Ways back to the trajectory, from where the hero was led astray. Raises as `rows` does."""
        return self._started().recoveries(self._read(reference), reference.key, self.outline(reference).legs)

    def trail(self, reference: TrajectoryRef) -> TrailMap:
        """Where the trajectory goes. Raises as `rows` does."""
        if reference.digest not in self._trails:
            self._trails = {reference.digest: self._started().trail(self._read(reference), reference.key)}
        return self._trails[reference.digest]

    def close(self) -> None:
        """End the emulator."""
        if self._player is not None:
            self._player.close()
            self._player = None

    def _save(self, archive: RunArchive, entry: ArchiveEntry) -> TrajectoryRef:
        parts, end = archive.archive.trajectory(entry), archive.states[entry.number]
        trajectory = Trajectory.of(entry.number, parts, end)
        return self._store.save_trajectory(write_trajectory(trajectory), entry.number, trajectory.steps)

    def _played(self, reference: TrajectoryRef) -> TrajectoryRows:
        return self._started().rows(self._read(reference), reference.key)

    def _read(self, reference: TrajectoryRef) -> Trajectory:
        return read_trajectory(self._store.read(reference), reference.key)

    def _started(self) -> TrajectoryPlayer:
        if self._player is None:
            self._player = self._make()
        return self._player
