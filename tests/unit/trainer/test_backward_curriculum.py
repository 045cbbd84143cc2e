"""The backward curriculum: starts move back on one trajectory as the policy reaches its goal, to the true start."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from pydantic import ValidationError

from bramble.solver.walkthrough import solve
from services.trainer.domain.backward import (
    OPENING,
    earliest_mastered,
    leg_points,
    longest_episode,
    points_of_legs,
    spread_points,
    start_step,
    true_starts,
)
from services.trainer.domain.epoch_metrics import GOAL, LEG, EpisodeSummary, epoch_metrics
from services.trainer.driver.session_factory import check_playable
from services.trainer.restarts.backward import BackwardCurriculum, imitation_weight, outcomes_by_point
from services.trainer.restarts.plan import RestartPlan
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.restarts.trajectory_player import TrajectoryOutline, TrajectoryPlayer, start_name
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, UnplayableRun
from services.trainer.state_archive.archive import ArchiveEntry, PathPart, PathQuality, StateArchive, first_steps
from services.trainer.state_archive.cell import ArchiveCell, cell_of
from services.trainer.state_archive.cell_watch import GoalWatch
from services.trainer.state_archive.goal import ArchiveGoal, TrajectoryLeg, next_goal
from shared.contracts.epoch import ArchiveDemonstrations, BackwardStage, PassesRef, TrajectoryRef
from shared.contracts.ids import Digest
from shared.contracts.learning.restarts import RestartsConfig
from shared.contracts.run import RunConfig
from shared.errors import ContractError, DigestMismatch
from shared.game.emulator.start import StartState, true_start
from shared.game.observation.counters import LASTING
from tests.unit.trainer.archived_play import CONFIG, RUN, ArchivedPlay, TrajectoriesInMemory, leg

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")
BACKWARD = RestartsConfig(share=0.5, mode="backward", stride=10, window=3, threshold=0.5)
REFERENCE = TrajectoryRef(entry=2, steps=60, key="models/t", digest=Digest("0" * 64))
STAGE = BackwardStage(trajectory=REFERENCE, left=[0, 40])


LATE = leg(20, 80)


def test_starts_lie_close_to_the_goal_and_then_ever_farther() -> None:
    assert leg_points(LATE, 60, BACKWARD, 3) == [77, 67, 50]
    assert leg_points(LATE, 15, BACKWARD, 3) == [32, 22, 20], "no start lies before the leg"
    assert leg_points(LATE, 0, BACKWARD, 3) == [20], "a mastered leg is not forgotten"


def test_many_legs_share_the_starts_of_an_epoch() -> None:
    wide = BACKWARD.model_copy(update={"window": 8})
    few = points_of_legs([LATE] * 2, [60, 0], wide, 20_000, 2)
    assert list(map(len, few)) == [7, 1], "the eighth would lie before the leg"
    legs = [leg(100 * one, 100 * one + 90) for one in range(40)]
    assert set(map(len, points_of_legs(legs, [90] * 40, wide, 115_000, 0))) == {4}, "as many as are tried four times"
    assert set(map(len, points_of_legs(legs, [90] * 40, wide, 1_000, 0))) == {2}, "two in any case"
    one = BACKWARD.model_copy(update={"window": 1})
    assert set(map(len, points_of_legs(legs, [90] * 40, one, 1_000, 0))) == {1}, "unless one is asked for"


def test_a_mastered_leg_has_episodes_of_its_own_in_each_third_epoch() -> None:
    legs = [LATE] * 3
    assert [points_of_legs(legs, [0, 60, 0], BACKWARD, 20_000, epoch)[2] for epoch in range(6)] == [
        [], [20], [], [], [20], [],
    ]  # fmt: skip


def test_a_start_lies_before_the_text_of_the_goal() -> None:
    """The hero has no control while a text is shown: from 70 steps on he reads what he is told at the goal."""
    controlled = [*range(20, 40), *range(50, 70), 80]
    assert start_step(30, LATE, controlled) == 30
    assert start_step(44, LATE, controlled) == 50, "the next moment of control"
    assert start_step(75, LATE, controlled) == 69, "the last one before the text; the next one is at the goal"
    assert start_step(75, leg(72, 80), controlled) is None


def test_the_true_start_has_the_rest_of_the_episodes() -> None:
    assert true_starts(45, 0.9) == 5
    assert true_starts(10, 0.5) == 10
    assert true_starts(3, 0.9) == 1, "some episode always begins there"


def test_starts_after_the_curriculum_lie_evenly_and_shift() -> None:
    legs = [leg(0, 200), leg(200, 500)]
    first, next_ = spread_points(legs, [0.5, 0.5], 0), spread_points(legs, [0.5, 0.5], 1)
    assert first == list(range(0, 500, 10))
    assert next_ != first
    assert {later - earlier for earlier, later in pairwise(next_)} == {10}


def test_starts_move_to_the_earliest_one_that_is_mastered() -> None:
    some, all_, few = [True, True, False], [True] * 3, [True] * 2
    assert earliest_mastered(60, {50: all_, 40: some, 30: [True, False, False]}, 0.5) == 40
    assert earliest_mastered(60, {50: [False] * 9, 40: few}, 0.5) == 60, "two episodes say too little"
    assert earliest_mastered(60, {30: all_, 0: all_}, 0.5) == 0


def summary(start: str, reached: bool, *, complete: bool = True) -> EpisodeSummary:
    facts = {GOAL: float(reached)}
    return EpisodeSummary("e", 9, 0.0, facts=facts, complete=complete, from_start=start == "start", start=start)


def test_only_episodes_from_the_trajectory_that_say_something_count() -> None:
    played = [
        summary("trajectory-30", True),
        summary("trajectory-30", False),
        summary("trajectory-30", False, complete=False),
        summary("trajectory-40", True, complete=False),
        summary("archive-3", True),
        summary("start", False),
        EpisodeSummary("e", 9, 0.0, start="start"),
    ]
    assert outcomes_by_point(played) == {30: [True, False], 40: [True]}
    metrics = epoch_metrics(played)
    assert metrics["goal_max"] == 0, "metrics of episodes count those from the true start alone"


class Refused(TrajectoriesInMemory):
    """A store that must not be asked."""

    def save_trajectory(self, data: bytes, entry: int, steps: int) -> TrajectoryRef:
        raise AssertionError("nothing new is worth a trajectory")


def no_player() -> TrajectoryPlayer:
    raise AssertionError("nothing is played")


class TwoLegs(ArchiveTrajectories):
    """Trajectories whose legs are known."""

    def outline(self, reference: TrajectoryRef) -> TrajectoryOutline:
        legs = [TrajectoryLeg(0, 20, ArchiveGoal(cell(1, 1))), TrajectoryLeg(20, 60, ArchiveGoal(cell(1, 2)))]
        return TrajectoryOutline(legs, list(range(60)))


def test_a_leg_moves_back_epoch_by_epoch_to_its_beginning() -> None:
    """A policy that reaches the goal from 15 steps before where it could reach it from an epoch ago."""
    curriculum = BackwardCurriculum(TwoLegs(Refused(), no_player))
    stage, lefts = STAGE, []
    for skill in range(40, -20, -15):
        points = leg_points(leg(20, 60), stage.left[1], BACKWARD, 3)
        played = [summary(start_name(point), point >= skill) for point in points * 3]
        moved = curriculum.next_stage(stage, BACKWARD, played, RunArchive(), None)
        assert moved is not None
        stage = moved
        lefts.append(stage.left)
        assert curriculum.figures["restarts/backward_left"] == sum(stage.left)
    assert lefts == [[0, 27], [0, 14], [0, 0], [0, 0]]
    assert stage.arrived
    assert not stage.model_copy(update={"left": [0, 10]}).arrived
    assert stage.model_copy(update={"left": [0, 9]}).arrived, "the last steps are learnt on the way there"
    assert curriculum.figures["restarts/backward_mastered"] == 2
    assert stage.success == [0.5, 0.5], "nothing was said yet"
    failed = [replace(summary("start", reached=False), facts={GOAL: 0.0, LEG: 1.0})] * 10
    moved = curriculum.next_stage(stage, BACKWARD, failed, RunArchive(), None)
    assert moved is not None
    assert moved.success == [0.75, 0.25]
    assert curriculum.figures["restarts/backward_hardest"] == 0.25
    assert stage.trajectory == STAGE.trajectory


def test_a_stage_of_another_version_is_refused() -> None:
    curriculum = BackwardCurriculum(TwoLegs(Refused(), no_player))
    with pytest.raises(ContractError, match="knows 3 legs of this trajectory, and this version cuts it into 2"):
        curriculum.plan(STAGE.model_copy(update={"left": [0, 5, 5]}), BACKWARD, {}, 4, 1_000)


def cell(room: int, *counters: int) -> ArchiveCell:
    return ArchiveCell(0, room, 1, 1, counters)


def archive_of(*paths: tuple[ArchiveCell, int]) -> StateArchive:
    archive = StateArchive()
    for number, (place, steps) in enumerate(paths):
        archive.add(ArchiveEntry(number, place, None, 1, bytes(steps), PathQuality(3, steps), "digest"))
    return archive


def test_the_goal_is_the_first_moment_of_the_greatest_achievement() -> None:
    archive = archive_of((cell(1, 0, 0), 0), (cell(2, 1, 0), 80), (cell(3, 1, 0), 50), (cell(4, 0, 0), 90))
    found = next_goal(archive, None, None)
    assert found is not None
    assert found.number == 2, "of equal achievements that with the shortest path"
    assert next_goal(archive, None, reached=2) is None, "nothing is worth more than what was reached"
    assert next_goal(archive, lambda entry: float(entry.number), reached=2) is None, "not by the judges either"
    assert next_goal(archive_of((cell(1, 0, 0), 0), (cell(2, 0, 0), 9)), None, None) is None
    assert next_goal(StateArchive(), None, None) is None


def test_the_judges_choose_the_next_goal_of_those_that_achieve_more() -> None:
    """Their reward model changes with every epoch: a place that it now values more is no progress."""
    chest = tuple(int(name == "chests") for name in LASTING)
    door, lever = (tuple(int(name in ("chests", one)) for name in LASTING) for one in ("doors", "levers"))
    places = [(cell(number, *counters), 10 * number) for number, counters in enumerate((chest, chest, door, lever))]
    archive = archive_of(start := (cell(9, *[0] * len(LASTING)), 0), *places)
    judged = [0.0, 5.0, 9.0, 6.0, 7.0]
    assert next_goal(archive, lambda entry: judged[entry.number], reached=1) == archive.entries[4]
    assert next_goal(archive, lambda entry: judged[entry.number], reached=4) is None, "a door is no more than a lever"
    assert next_goal(archive, lambda entry: -judged[entry.number], reached=1) is None
    assert next_goal(archive_of(start, places[0]), None, reached=0) is None, "a chest with money alone is no goal"


def test_a_goal_is_reached_in_its_room_with_at_least_its_counters() -> None:
    goal = ArchiveGoal(cell(3, 1, 2))
    assert goal.reached_in(cell(3, 1, 2)._replace(column=9), 0)
    assert goal.reached_in(cell(3, 2, 2), 0)
    assert not goal.reached_in(cell(3, 2, 1), 0)
    assert not goal.reached_in(cell(4, 1, 2), 0)
    assert not goal._replace(rupees=5).reached_in(cell(3, 2, 2), 4), "the rest of the path pays more"


def test_a_goal_counts_also_where_the_hero_has_no_control(made: "Curriculum") -> None:
    """The text that ends the world is shown when its last item is taken: no step with control follows."""
    session = made.play.games._open_games().sessions[0]
    here = cell_of(session.state, session.counters.values)
    watch, elsewhere = GoalWatch(ArchiveGoal(here)), GoalWatch(ArchiveGoal(here._replace(room=here.room + 1)))
    for one in (watch, elsewhere):
        one.look(session.state._replace(control=False), session.counters)
    assert watch.reached
    assert not elsewhere.reached


def test_a_path_may_leave_another_one_in_its_middle() -> None:
    path = (PathPart(1, b"abc"), PathPart(2, b"de"))
    assert first_steps(path, None) == path
    assert first_steps(path, 1) == (PathPart(1, b"a"),)
    assert first_steps(path, 3) == (PathPart(1, b"abc"), PathPart(2, b"")), "it left after the second seed was set"
    assert first_steps(path, 4) == (PathPart(1, b"abc"), PathPart(2, b"d"))


class Curriculum:
    """A curriculum on the longest trajectory of an archive that random play filled."""

    def __init__(self) -> None:
        self.play, self.store = ArchivedPlay(), TrajectoriesInMemory()
        self.play.epoch(0)
        self.trajectories = ArchiveTrajectories(self.store, lambda: TrajectoryPlayer(CONFIG.environment()))
        entry = max(self.play.archive.archive.best(), key=lambda one: one.quality.steps)
        (reference,) = self.trajectories.save(self.play.archive, [entry])
        left = [leg.end - leg.begin for leg in self.trajectories.outline(reference).legs]
        self.stage = BackwardStage(trajectory=reference, left=left)
        self.curriculum = BackwardCurriculum(self.trajectories)

    def epoch_plan(self, epoch: int, stage: BackwardStage, share: float) -> EpochPlan:
        config = BACKWARD.model_copy(update={"share": share})
        return EpochPlan(epoch, restarts=self.curriculum.plan(stage, config, self.play.archive.known, epoch, 20_000))


@pytest.fixture(scope="module")
def made() -> Iterator[Curriculum]:
    curriculum = Curriculum()
    yield curriculum
    curriculum.trajectories.close()
    curriculum.play.games.close()


def test_the_same_stage_gives_the_same_starts_on_the_trajectory(made: Curriculum) -> None:
    first, again = (made.epoch_plan(1, made.stage, 0.9).restarts for _ in range(2))
    assert first is not None
    assert first == again
    legs = made.trajectories.outline(made.stage.trajectory).legs
    assert (legs[0].begin, legs[-1].end) == (0, made.stage.trajectory.steps)
    for start in first.starts:
        if start is None:
            continue
        path = first.paths[start.name]
        (leg,) = [one for one in legs if one.begin <= path.steps < one.end]
        assert path.leg is not None
        assert legs[path.leg] == leg
        assert start.length == longest_episode(leg.end - path.steps)
        assert start.ends_with_death, "an episode of a leg is one try"


def test_after_the_last_stage_episodes_begin_everywhere(made: Curriculum) -> None:
    arrived = made.stage.model_copy(update={"left": [0] * len(made.stage.left)})
    plan = made.epoch_plan(1, arrived, 0.9).restarts
    assert plan is not None
    steps = [plan.paths[start.name].steps for start in plan.starts if start is not None]
    assert min(steps) < 10
    assert max(steps) > made.stage.trajectory.steps - 10
    assert plan.starts.count(None) == true_starts(len(steps), 0.9)
    learnt, last = ArchiveDemonstrations(backward=made.stage), ArchiveDemonstrations(backward=arrived)
    assert (imitation_weight(learnt), imitation_weight(last)) == (1.0, 0.1)
    own = last.model_copy(update={"passes": [PassesRef(passes=9, key="models/p", digest=Digest("0" * 64))]})
    assert (imitation_weight(own), imitation_weight(None)) == (0.3, 1.0), "its own passes hold corrections"


def test_what_play_finds_from_there_is_reached_again_from_the_true_start(made: Curriculum) -> None:
    play = made.play
    before = len(play.archive.archive.entries)
    result = play.play(made.epoch_plan(1, made.stage, 0.9))
    assert {one.start for one in result.summaries} <= {start_name(point) for point in (0, *range(200))} | {"start"}
    assert all(GOAL in one.facts for one in result.summaries)
    found = [entry for entry in play.archive.archive.entries[before:] if entry.follows is not None]
    assert found, "play from the middle of the trajectory reaches cells that are new"
    newest = play.trajectory(found[-1].number)
    assert newest.steps == found[-1].quality.steps
    player = TrajectoryPlayer(CONFIG.environment())
    assert len(player.rows(newest, "newest").actions) == newest.steps, "the replay ends in the state that was saved"
    player.close()


def test_an_episode_is_truncated_at_the_length_of_its_start(made: Curriculum) -> None:
    session = made.play.games._open_games().sessions[0]
    plan = made.epoch_plan(1, made.stage, 0.9).restarts
    assert plan is not None
    start = next(one for one in plan.starts if one is not None)
    session.begin(replace(start, length=3), 1)
    assert [session.step(0).truncated for _ in range(3)] == [False, False, True]
    session.begin(replace(start, length=None), 1)
    assert not any(session.step(0).truncated for _ in range(9))


def test_an_episode_that_reaches_a_goal_is_paid_for_it_once() -> None:
    walk = solve("garden").actions[:120]
    backward = RestartsConfig(share=0.5, mode="backward", goal_reward=3)
    run = CONFIG.run.model_copy(update={"frame_skip": 4, "restarts": backward})
    games = RLlibVectorEnv({SESSION_CONFIG: replace(CONFIG, run=run), "num_envs": 1})
    sword = ArchiveGoal(ArchiveCell(0, 0x10, 0, 0, tuple(int(name in ("items", "sword_levels")) for name in LASTING)))

    def played(legs: tuple[TrajectoryLeg, ...]) -> tuple[float, EpisodeSummary]:
        games.begin_epoch(EpochPlan(0, restarts=RestartPlan((None,), {}, {}, sword, legs=legs)))
        games.reset()
        paid = sum(float(games.step(np.array([action]))[1][0]) for action in walk)
        (summary,) = games.collect(final=True).summaries
        return paid, summary

    (plain, without), (paid, with_goal) = played(()), played((TrajectoryLeg(0, 300, sword),))
    games.close()
    assert paid - plain == pytest.approx(3)
    assert with_goal.reward - without.reward == pytest.approx(3)
    assert (without.terms["goal"], with_goal.terms["goal"]) == (0, 3)


def test_random_moves_make_actions_learnt_by_heart_lead_elsewhere(made: Curriculum) -> None:
    """Seeds alone change nothing where no enemy is. Walls bring some of the shifted heroes back to the same place."""
    plan = made.epoch_plan(1, made.stage.model_copy(update={"left": [30, *made.stage.left[1:]]}), 0.9).restarts
    assert plan is not None
    start = next(one for one in plan.starts if one is not None)
    archive = made.play.archive.archive
    parts = archive.trajectory(archive.entries[made.stage.trajectory.entry])
    rest = [action for part in parts for action in part.actions][plan.paths[start.name].steps :]
    session = made.play.games._open_games().sessions[0]

    def ends(begin: StartState) -> set[tuple[int, int, int]]:
        session.set_starts([begin])
        session.reseed(0)
        found = set()
        for _ in range(6):
            session.reset()
            assert len(session.episode.actions) == session.episode.steps <= begin.opening
            for action in rest:
                session.step(action)
            found.add((session.state.room, session.state.x, session.state.y))
        return found

    assert start.opening == OPENING
    assert len(ends(replace(start, opening=0))) == 1
    assert len(ends(start)) > 1


def test_an_opening_is_part_of_the_episode_and_pays_nothing(made: Curriculum) -> None:
    session = made.play.games._open_games().sessions[0]
    start = true_start(session.game)
    first = session.begin(start, 7, [1, 4, 4]).copy()
    assert (bytes(session.episode.actions), session.episode.steps) == (bytes([1, 4, 4]), 3)
    assert session.episode.total == 0
    assert not any(session.term_sums.values())
    session.begin(start, 7)
    for action in (1, 4, 4):
        shown = session.step(action).observation
    np.testing.assert_array_equal(first, shown)


def test_a_damaged_trajectory_is_refused_by_name(made: Curriculum) -> None:
    key = made.stage.trajectory.key
    whole = made.store.objects[key]
    made.store.objects[key] = whole[:-1]
    with pytest.raises(DigestMismatch, match=key):
        made.epoch_plan(1, made.stage, 0.5)
    made.store.objects[key] = whole


def test_settings_that_do_not_fit_are_refused_with_the_reason() -> None:
    with pytest.raises(ValidationError, match=r"restarts\.mode backward needs restarts\.share above 0"):
        RunConfig(restarts=RestartsConfig(mode="backward"))
    config = replace(CONFIG, run=RUN.model_copy(update={"restarts": BACKWARD}), curriculum=(0.2,))
    with pytest.raises(UnplayableRun, match="needs an empty ZELDA_DRIVER__CURRICULUM"):
        check_playable(config)
