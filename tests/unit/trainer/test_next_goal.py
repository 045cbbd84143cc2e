"""A curriculum that has arrived: every leg counts as mastered, and it goes on with a goal that is worth more."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from services.trainer.domain.epoch_metrics import GOAL, EpisodeSummary
from services.trainer.restarts.backward import BackwardCurriculum
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.restarts.trajectory_player import TrajectoryOutline, TrajectoryStart, start_name
from services.trainer.state_archive.archive import ArchiveEntry, PathQuality, StateArchive
from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.goal import ArchiveGoal
from shared.contracts.epoch import BackwardStage, TrajectoryRef
from shared.contracts.ids import Digest
from shared.contracts.learning.restarts import RestartsConfig
from shared.game.emulator.start import StartState
from shared.game.observation.counters import LASTING
from tests.unit.trainer.archived_play import TrajectoriesInMemory, leg

CONFIG: Final = RestartsConfig(share=0.5, mode="backward", stride=10, window=3, threshold=0.5)
LAST: Final = ArchiveGoal(ArchiveCell(0, 9, 0, 0, ()))


def reference(entry: int) -> TrajectoryRef:
    """The trajectory to an entry, of 60 steps."""
    return TrajectoryRef(entry=entry, steps=60, key=f"models/{entry}", digest=Digest("0" * 64))


class KnownTrajectories(ArchiveTrajectories):
    """Trajectories of two legs, which no emulator plays."""

    def __init__(self) -> None:
        super().__init__(TrajectoriesInMemory(), lambda: (_ for _ in ()).throw(AssertionError("nothing is played")))
        self.saved: list[int] = []

    def outline(self, reference: TrajectoryRef) -> TrajectoryOutline:
        return TrajectoryOutline([leg(0, 20), leg(20, 60)._replace(goal=LAST)], list(range(60)))

    def starts(self, reference: TrajectoryRef, steps: Mapping[int, int]) -> tuple[Any, dict[int, TrajectoryStart]]:
        found = {point: TrajectoryStart(StartState(start_name(point), b""), step) for point, step in steps.items()}
        return SimpleNamespace(entry=reference.entry), found

    def save(self, archive: RunArchive, entries: Iterable[ArchiveEntry]) -> list[TrajectoryRef]:
        numbers = [entry.number for entry in entries]
        self.saved += numbers
        return [reference(number) for number in numbers]


def archive_with(*rooms: int) -> RunArchive:
    """An archive whose entry in each room has solved so many doors as the room's number says."""
    archive = StateArchive()
    for number, room in enumerate(rooms):
        counters = tuple(room * (name == "doors") for name in LASTING)
        cell = ArchiveCell(0, room, 1, 1, counters)
        archive.add(ArchiveEntry(number, cell, None, 1, bytes(10 * number), PathQuality(3, 10 * number), "digest"))
    return RunArchive(archive=archive)


def test_a_curriculum_that_has_arrived_goes_on_with_the_next_goal() -> None:
    trajectories = KnownTrajectories()
    curriculum = BackwardCurriculum(trajectories)
    arrived = BackwardStage(trajectory=reference(1), left=[0, 0])
    moved = curriculum.next_stage(arrived, CONFIG, [], archive_with(0, 1, 2), None)
    assert moved == BackwardStage(trajectory=reference(2), left=[20, 40])
    assert trajectories.saved == [2]
    on_the_way = BackwardStage(trajectory=reference(1), left=[0, 40])
    assert curriculum.next_stage(on_the_way, CONFIG, [], archive_with(0, 1, 2), None) == on_the_way
    assert curriculum.figures["restarts/backward_mastered"] == 1
    played = [
        EpisodeSummary("e", 9, 0.0, facts={GOAL: float(reached)}, from_start=False, start=start_name(30))
        for reached in (True, False, False, True, False)
    ]
    curriculum.next_stage(on_the_way, CONFIG, played, archive_with(0, 1, 2), None)
    assert curriculum.figures["restarts/backward_episodes"] == 5
    assert curriculum.figures["restarts/backward_success"] == 0.4
    kept = curriculum.next_stage(arrived, CONFIG, [], archive_with(0, 1), None)
    assert kept is not None
    assert (kept.trajectory, kept.left) == (reference(1), [0, 0]), "nothing is worth more"
    assert trajectories.saved == [2]


def test_after_the_curriculum_episodes_go_on_through_every_leg() -> None:
    """Also through one of which a few steps are left: they are learnt on the way."""
    curriculum = BackwardCurriculum(KnownTrajectories())
    for left, mastered in (([0, 9], [True, True]), ([0, 40], [True, False])):
        plan = curriculum.plan(BackwardStage(trajectory=reference(1), left=left), CONFIG, {}, 0, 20_000)
        assert [one.mastered for one in plan.legs] == mastered
        assert plan.goal == LAST
