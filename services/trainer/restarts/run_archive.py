"""The state archive of a run in the driver: built from the packs of its epochs, it draws where episodes begin.

The order of an epoch pins the newest pack. So a repeated epoch begins its episodes at the same states.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from services.trainer.documents import StoredObject
from services.trainer.domain.curriculum import SLOTS, slots_of
from services.trainer.domain.shaping import ConservativePotential
from services.trainer.restarts.collector import CollectedState, Known, PathStart
from services.trainer.restarts.pack import ArchivePack, read_pack
from services.trainer.state_archive.archive import ArchiveEntry, StateArchive, is_better
from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.selection import Score, select
from shared.contracts.epoch import ArchiveRef
from shared.contracts.learning.restarts import RestartSelection
from shared.errors import ContractError
from shared.game.emulator.start import StartState
from shared.game.observation import counters
from shared.game.recording.segment import unpack_state

STREAM: Final = 0x7E57A27  # of random numbers: the draw shares none with the policy's or the games'
IMITATION_STREAM: Final = 0x7E57A28


@dataclass(slots=True)
class RunArchive:
    """Entries, and the states of each cell's best entry."""

    newest: ArchiveRef | None = None
    archive: StateArchive = field(default_factory=StateArchive)
    states: dict[int, CollectedState] = field(default_factory=dict)
    """By the number of the entry."""

    @classmethod
    def load(cls, newest: ArchiveRef | None, read: Callable[[StoredObject], bytes]) -> "RunArchive":
        """Read the chain of packs that ends with `newest`. Raises ContractError if it does not fit together."""
        packs: list[tuple[ArchiveRef, ArchivePack]] = []
        reference = newest
        while reference is not None:
            pack = read_pack(read(reference), reference.key)
            packs.append((reference, pack))
            reference = pack.previous
        made = cls()
        for reference, pack in reversed(packs):
            made.append(reference, pack)
        return made

    @property
    def known(self) -> Known:
        """The quality of the best path into each cell."""
        return {entry.cell: entry.quality for entry in self.archive.best()}

    def merge(self, found: Sequence[CollectedState], visits: Mapping[ArchiveCell, int]) -> ArchivePack:
        """Select what an epoch adds: each state that is still the best path into its cell, in the order given.

        The archive itself does not change until the pack is stored and `append` is called.
        """
        best = dict(self.known)
        kept: list[CollectedState] = []
        for state in found:
            known = best.get(state.cell)
            if known is None or is_better(state.quality, known):
                best[state.cell] = state.quality
                kept.append(state)
        return ArchivePack(self.newest, len(self.archive.entries), tuple(kept), dict(visits))

    def draw(
        self, seed: Sequence[int], share: float, selection: RestartSelection, score: Score | None = None
    ) -> tuple[list[StartState | None], dict[str, PathStart]]:
        """Draw a hundred starts, `share` of them at archive states; None is the true start. Also their paths by name.

        While no reward model can score entries, selection by judges draws by novelty.
        """
        (count,) = slots_of([share])
        if not count or not len(self.archive):
            return [None] * SLOTS, {}
        name = _possible(selection, score)
        entries = select(self.archive, count, np.random.default_rng([STREAM, *seed]), name, score)
        paths = {start_name(entry.number): PathStart(entry.number, entry.quality.steps) for entry in entries}
        return [*map(self._start, entries), *[None] * (SLOTS - count)], paths

    def choose(
        self, seed: Sequence[int], count: int, selection: RestartSelection, score: Score | None = None
    ) -> list[ArchiveEntry]:
        """Draw at most `count` different entries whose trajectories are imitated, by the same selection as `draw`."""
        if not len(self.archive):
            return []
        rng = np.random.default_rng([IMITATION_STREAM, *seed])
        return select(self.archive, count, rng, _possible(selection, score), score, distinct=True)

    def _start(self, entry: ArchiveEntry) -> StartState:
        state = self.states[entry.number]
        return StartState(start_name(entry.number), unpack_state(state.state), state.memory)

    def append(self, reference: ArchiveRef, pack: ArchivePack) -> None:
        """Continue with a pack that is stored under `reference`. Raises ContractError if it belongs elsewhere."""
        if pack.previous != self.newest or pack.first != len(self.archive.entries):
            raise ContractError(f"{reference.key} does not continue the archive of states before it")
        for state in pack.states:
            former = self.archive.best_of(state.cell)
            entry = _entry(len(self.archive.entries), state)
            try:
                self.archive.add(entry)
            except ValueError as error:
                raise ContractError(f"{reference.key}: {error}") from error
            if former is not None:
                del self.states[former.number]  # later entries need its path, not its state
            self.states[entry.number] = state
        self.archive.visits.update(Counter(pack.visits))
        self.newest = reference


def _possible(selection: RestartSelection, score: Score | None) -> RestartSelection:
    return "novelty" if selection == "judges" and score is None else selection


def start_name(entry: int) -> str:
    """The name of the start state of an archive entry."""
    return f"archive-{entry}"


def score_by(model: bytes, conservatism: float) -> Score:
    """How a reward model of event counters values an entry: its potential."""
    potential = ConservativePotential.from_bytes(model, counters.VERSION, conservatism)

    def score(entry: ArchiveEntry) -> float:
        packed = np.frombuffer(entry.counters, "<u2").reshape(1, counters.SIZE)
        return float(potential(counters.features(packed))[0])

    return score


def _entry(number: int, state: CollectedState) -> ArchiveEntry:
    return ArchiveEntry(
        *(number, state.cell, state.parent, state.seed, state.actions),
        *(state.quality, state.digest, state.counters, state.follows),
    )
