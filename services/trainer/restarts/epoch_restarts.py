"""The restarts of a run, epoch by epoch: from the order's archive to a plan, from what was found to a new pack."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import structlog

from services.trainer.documents import StoredObject
from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.other_ways.leg_passes import LegPass, write_passes
from services.trainer.restarts.backward import BackwardCurriculum
from services.trainer.restarts.collector import CollectedState
from services.trainer.restarts.pack import ArchivePack, write_pack
from services.trainer.restarts.plan import RestartPlan
from services.trainer.restarts.run_archive import RunArchive, score_by
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.coverage import archived_rooms
from services.trainer.state_archive.selection import Score
from shared.contracts.epoch import (
    ArchiveDemonstrations,
    ArchiveRef,
    BackwardStage,
    EpochStart,
    PassesRef,
    TrajectoryRef,
)
from shared.contracts.progress import ArchiveCoverage
from shared.game.observation import counters
from shared.rewardnet import view_of

PASSES_KEPT: Final = 3  # epochs whose passes are imitated; a policy has outgrown older ones
log = structlog.get_logger(__name__)


class PackStore(Protocol):
    """Where packs are kept; driver_store.DriverStore is one."""

    def read(self, reference: StoredObject) -> bytes:
        """The object, checked against its digest."""
        ...

    def save_archive(self, data: bytes, epoch: int) -> ArchiveRef:
        """Store a pack."""
        ...

    def save_passes(self, data: bytes, epoch: int, passes: int) -> PassesRef:
        """Store passes that an epoch played or found."""
        ...

    def save_coverage(self, coverage: ArchiveCoverage) -> None:
        """Store the rooms of the archive after an epoch."""
        ...


class EpochRestarts:
    """Keeps the archive in memory from epoch to epoch; reads it again when an order pins another one."""

    def __init__(self, store: PackStore, trajectories: ArchiveTrajectories) -> None:
        self._store, self._trajectories = store, trajectories
        self._backward = BackwardCurriculum(trajectories)
        self._archive = RunArchive()
        self._score: Score | None = None  # by the order's reward model, where restarts are selected by judges

    def begin(self, order: EpochStart, pack: ArchivePack) -> tuple[ArchiveRef, ArchiveDemonstrations | None]:
        """Begin the archive of a run with a first pack; return it, and what the first epoch learns from it."""
        reference = self._store.save_archive(write_pack(pack), order.epoch)
        self._archive = RunArchive()
        self._archive.append(reference, pack)
        return reference, self.demonstrate(order, ())

    def plan(self, order: EpochStart, model: bytes | None) -> RestartPlan | None:
        """The order's restarts; None if the run keeps no archive. `model` is the reward model that the order names.

        Raises ContractError or DigestMismatch, with the object's name, if the archive is damaged.
        """
        restarts = order.config.restarts
        if not order.config.keeps_archive:
            return None
        if self._archive.newest != order.archive:
            self._archive = RunArchive.load(order.archive, self._store.read)
        self._score = self._score_of(order, model) if restarts.selection == "judges" else None
        stage = stage_of(order)
        if stage is not None:
            plan = self._backward.plan(stage, restarts, self._archive.known, order.epoch, order.config.epoch_steps)
            return replace(plan, trail=self._trajectories.trail(stage.trajectory)) if _shows_ways_back(order) else plan
        seed = (order.config.seed, order.epoch)
        starts, paths = self._archive.draw(seed, restarts.share, restarts.selection, self._score)
        return RestartPlan(tuple(starts), paths, self._archive.known, tiles_per_cell=restarts.cell)

    def finish(
        self, order: EpochStart, states: Sequence[CollectedState], visits: Mapping[ArchiveCell, int]
    ) -> ArchiveRef | None:
        """Store what the epoch found; return the archive after it, or None if the run keeps none."""
        if not order.config.keeps_archive:
            return None
        pack = self._archive.merge(states, visits)
        reference = self._store.save_archive(write_pack(pack), order.epoch)
        self._archive.append(reference, pack)
        rooms = archived_rooms(self._archive.archive, pack.first)
        self._store.save_coverage(ArchiveCoverage(run=order.run, epoch=order.epoch, rooms=rooms))
        log.info("archive stored", epoch=order.epoch, new=len(pack.states), cells=len(self._archive.archive))
        return reference

    def demonstrate(
        self, order: EpochStart, summaries: Sequence[EpisodeSummary], passes: Sequence[LegPass] = ()
    ) -> ArchiveDemonstrations | None:
        """Choose what the next epoch learns from the archive after this one, which played these episodes.

        `passes` are what they saw and did on the legs that they passed.
        """
        stage = None
        if order.config.restarts.backward:
            restarts = order.config.restarts
            stage = self._backward.next_stage(stage_of(order), restarts, summaries, self._archive, self._score)
        imitated = self._imitated(order, stage)
        if not imitated and stage is None:
            return None
        if not imitated or stage is None:
            return ArchiveDemonstrations(imitated=imitated, backward=stage)
        own = self._passes(order, stage, passes) if stage.arrived else []
        back = self._recoveries(order, stage) if _shows_ways_back(order) else None
        return ArchiveDemonstrations(imitated=imitated, backward=stage, passes=own, recoveries=back)

    def _imitated(self, order: EpochStart, stage: BackwardStage | None) -> list[TrajectoryRef]:
        """What the next epoch imitates: the curriculum's trajectory, or drawn ones."""
        config = order.config
        if not config.imitation.of_archive:
            return []
        if stage is not None:
            return [stage.trajectory]
        seed, selection = (config.seed, order.epoch), config.restarts.selection
        entries = self._archive.choose(seed, config.imitation.trajectories, selection, self._score)
        return self._trajectories.save(self._archive, entries)

    def _passes(self, order: EpochStart, stage: BackwardStage, passes: Sequence[LegPass]) -> list[PassesRef]:
        """The policy's own passes of the last epochs on this stage's trajectory, with those of this epoch."""
        before = _learnt_before(order, stage)
        if before is None:
            return []
        log.info("passes kept", epoch=order.epoch, ways_back=sum(one.back for one in passes), passes=len(passes))
        new = [self._store.save_passes(write_passes(passes), order.epoch, len(passes))] if passes else []
        return [*before.passes, *new][-PASSES_KEPT:]

    def _recoveries(self, order: EpochStart, stage: BackwardStage) -> PassesRef | None:
        """The ways back to this stage's trajectory. To find them takes minutes, so they are stored."""
        before = _learnt_before(order, stage)
        if before is not None and before.recoveries is not None:
            return before.recoveries
        ways = self._trajectories.recoveries(stage.trajectory)
        log.info("ways back found", epoch=order.epoch, ways=len(ways))
        return self._store.save_passes(write_passes(ways), order.epoch, len(ways)) if ways else None

    def figures(self) -> dict[str, float]:
        """How far the archive reaches and where the backward curriculum stands, as metrics of an epoch."""
        archive = self._archive.archive
        reach = {"restarts/cells": float(len(archive)), "restarts/rooms": float(len(archive.rooms()))}
        return reach | self._backward.figures

    @staticmethod
    def _score_of(order: EpochStart, model: bytes | None) -> Score | None:
        """How the order's reward model values entries; None if it reads something other than event counters."""
        if model is None or order.reward_model is None or view_of(model) != counters.VERSION:
            return None
        return score_by(model, order.config.shaping.conservatism)


def _shows_ways_back(order: EpochStart) -> bool:
    """Whether the policy imitates ways back to the trajectory."""
    return order.config.imitation.of_archive and order.config.imitation.recovery_share > 0


def _learnt_before(order: EpochStart, stage: BackwardStage) -> ArchiveDemonstrations | None:
    """What the order's epoch learns from the archive, if it is on the trajectory of this stage already."""
    former = stage_of(order)
    return order.demonstrations if former is not None and former.trajectory == stage.trajectory else None


def stage_of(order: EpochStart) -> BackwardStage | None:
    """The stage of the backward curriculum that an order pins."""
    return None if order.demonstrations is None else order.demonstrations.backward
