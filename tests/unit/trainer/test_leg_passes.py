"""The policy imitates its own passes of a demonstration's legs: most those of the legs that it fails."""

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save

from bramble.solver.walkthrough import solve
from services.trainer.imitation.demonstrations import Demonstrations, read_demonstrations
from services.trainer.other_ways.fights import Fight, FightWin, WonFight
from services.trainer.other_ways.leg_passes import (
    PASSES_OF_A_LEG,
    LegPass,
    PassWatch,
    newest,
    pack_passes,
    read_passes,
    unpack_passes,
    write_passes,
)
from services.trainer.other_ways.trail_map import TrailMap
from services.trainer.restarts.epoch_restarts import PASSES_KEPT, EpochRestarts
from services.trainer.restarts.plan import RestartPlan
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.restarts.trajectory_player import TrajectoryPlayer, TrajectoryRows
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG
from services.trainer.state_archive.cell import ArchiveCell
from services.trainer.state_archive.goal import ArchiveGoal, TrajectoryLeg
from shared.contracts.base import sha256
from shared.contracts.epoch import (
    ArchiveDemonstrations,
    ArchiveRef,
    BackwardStage,
    EpochStart,
    PassesRef,
    TrajectoryRef,
)
from shared.contracts.ids import Digest
from shared.contracts.learning.restarts import ImitationConfig, RestartsConfig
from shared.contracts.progress import ArchiveCoverage
from shared.contracts.run import RunConfig
from shared.errors import ContractError
from shared.game.observation.counters import LASTING
from tests.unit.trainer.archived_play import CONFIG, TrajectoriesInMemory
from tests.unit.trainer.run_fixtures import NOW, RUN

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")
LEARNING = CONFIG.run.model_copy(
    update={
        "restarts": RestartsConfig(share=0.5, mode="backward"),
        "imitation": ImitationConfig(mode="sil", source="archive"),
    }
)
LONGEST = [300] * 8
TRAJECTORY = TrajectoryRef(entry=2, steps=60, key="models/t", digest=Digest("0" * 64))
TWENTY = TrajectoryRows(np.zeros((20, 4), np.float32), np.zeros(20, np.int64), 0.0)
ARRIVED = BackwardStage(trajectory=TRAJECTORY, left=[0, 0, 0], success=[1.0, 0.2, 0.6])


def one_pass(leg: int, steps: int, shown: float = 0.0) -> LegPass:
    return LegPass(leg, np.full((steps, 4), shown, np.float32), np.arange(steps))


def same(one: LegPass, other: LegPass) -> bool:
    equal = np.array_equal(one.observations, other.observations) and np.array_equal(one.actions, other.actions)
    return equal and (one.leg, one.back) == (other.leg, other.back)


def chances(rows: Demonstrations, *shown: float) -> dict[float, float]:
    """The chance of the rows in which the policy sees each of these."""
    return {one: float(rows.chances[rows.observations[:, 0] == one].sum()) for one in shown}


def seen(*values: float) -> list[list[float]]:
    return [[value] for value in values]


def test_a_pass_holds_what_was_seen_and_done_since_the_leg_before() -> None:
    watch = PassWatch(2, LONGEST)
    for env in (0, 1):
        watch.begin(env, 3)
    for value, leg in enumerate((3, 3, 4, 4, 6)):
        watch.add(0, np.array([value], np.float32), value + 10, leg)
        watch.add(1, np.array([-value], np.float32), 0, 3)
    first, second = watch.drain()
    assert (first.leg, first.observations.tolist(), first.actions.tolist()) == (3, seen(0, 1, 2), [10, 11, 12])
    assert (second.leg, second.observations.tolist()) == (4, seen(3, 4)), "it left the next leg out"
    assert watch.drain() == []


def test_an_episode_that_ends_before_a_goal_leaves_no_pass() -> None:
    watch = PassWatch(1, LONGEST)
    watch.begin(0, 0)
    watch.add(0, np.array([1], np.float32), 1, 0)
    watch.begin(0, 0)
    watch.add(0, np.array([2], np.float32), 2, 1)
    (found,) = watch.drain()
    assert found.observations.tolist() == seen(2)


def test_steps_within_an_option_show_no_choice() -> None:
    watch = PassWatch(1, LONGEST)
    watch.begin(0, 0)
    for value, (action, leg) in enumerate([(8, 0), (None, 0), (2, 0), (8, 1), (None, 1), (None, 2), (None, 3), (4, 4)]):
        watch.add(0, np.array([value], np.float32), action, leg)
    before, after = watch.drain()
    assert (before.leg, before.observations.tolist(), before.actions.tolist()) == (0, seen(0, 2, 3), [8, 2, 8])
    assert (after.leg, after.observations.tolist(), after.actions.tolist()) == (3, seen(7), [4]), "1 and 2: no choice"


def test_a_pass_that_wanders_is_not_kept() -> None:
    watch = PassWatch(1, [3, 3])
    watch.begin(0, 0)
    for value, leg in enumerate([0, 0, 1, 1, 1, 1, 2]):
        watch.add(0, np.array([value], np.float32), 1, leg)
    (found,) = watch.drain()
    assert (found.leg, found.observations.tolist()) == (0, seen(0, 1, 2)), "the second leg took four steps"


def test_an_epoch_keeps_the_newest_passes_of_each_leg() -> None:
    many = [one_pass(number % 2, 1 + number) for number in range(40)]
    kept = newest(many)
    assert [one.leg for one in kept] == [0] * PASSES_OF_A_LEG + [1] * PASSES_OF_A_LEG
    assert [len(one.actions) for one in kept[-2:]] == [38, 40]
    both = newest([*many, *(replace(one, back=True) for one in many)])
    assert Counter((one.leg, one.back) for one in both) == Counter(
        {(leg, back): PASSES_OF_A_LEG for leg in (0, 1) for back in (False, True)}
    )


def test_passes_are_stored_as_bytes_that_depend_on_nothing_else() -> None:
    passes = [one_pass(3, 5, 0.25), replace(one_pass(7, 2), back=True)]
    data = write_passes(passes)
    assert data == write_passes(passes)
    for read in (read_passes(data, "models/p"), unpack_passes(pack_passes(passes))):
        assert all(same(one, other) for one, other in zip(read, passes, strict=True))
    rows = {"legs": np.array([3]), "0.observations": np.zeros((2, 4), np.float32), "0.actions": np.arange(2)}
    (earlier,) = read_passes(zlib.compress(save(rows)), "models/p")
    assert (earlier.leg, earlier.back) == (3, False), "earlier versions kept own passes alone"
    assert pack_passes([]) == ""
    assert unpack_passes("") == []


@pytest.mark.parametrize(
    "damaged", [b"", b"no zlib", zlib.compress(b"no tensors"), write_passes([one_pass(0, 90)])[:40]]
)
def test_damaged_passes_are_refused_by_name(damaged: bytes) -> None:
    with pytest.raises(ContractError, match="models/p holds no passes of legs"):
        read_passes(damaged, "models/p")


def test_the_passes_of_games_are_what_the_policy_saw_and_did() -> None:
    walk = solve("garden").actions[:120]
    sword = ArchiveGoal(ArchiveCell(0, 0x10, 0, 0, tuple(int(name in ("items", "sword_levels")) for name in LASTING)))

    def play(*legs: TrajectoryLeg, **changes: object) -> tuple[list[LegPass], list[np.ndarray]]:
        run = LEARNING.model_copy(update={"frame_skip": 4, **changes})
        games = RLlibVectorEnv({SESSION_CONFIG: replace(CONFIG, run=run), "num_envs": 1})
        games.begin_epoch(EpochPlan(0, restarts=RestartPlan((None,), {}, {}, sword, legs=legs)))
        observation, _ = games.reset()
        shown = []
        for action in walk:
            shown.append(observation[0].copy())
            observation, *_ = games.step(np.array([action]))
        found = games.collect(final=True).passes
        games.close()
        return found, shown

    leg = TrajectoryLeg(0, 300, sword)
    (found,), shown = play(leg)
    steps = len(found.actions)
    assert 50 < steps <= len(walk)
    np.testing.assert_array_equal(found.observations, shown[:steps])
    assert found.actions.tolist() == list(walk[:steps])
    assert play()[0] == [], "without legs nothing is passed"
    assert play(leg, imitation=ImitationConfig(mode="sil", source="judged"))[0] == [], "they are not imitated"


class Store(TrajectoriesInMemory):
    """What an epoch's restarts store, in memory."""

    def save_archive(self, data: bytes, epoch: int) -> ArchiveRef:
        raise AssertionError("no archive is stored")

    def save_coverage(self, coverage: ArchiveCoverage) -> None:
        raise AssertionError("no archive is stored")

    def save_passes(self, data: bytes, epoch: int, passes: int) -> PassesRef:
        key = f"models/passes-{epoch}"
        self.objects[key] = data
        return PassesRef(passes=passes, key=key, digest=Digest(sha256(data)))


def order(
    epoch: int, stage: BackwardStage, passes: Sequence[PassesRef] = (), config: RunConfig = LEARNING
) -> EpochStart:
    shown = ArchiveDemonstrations(imitated=[stage.trajectory], backward=stage, passes=list(passes))
    return EpochStart(run=RUN, epoch=epoch, fence=1, config=config, demonstrations=shown, created=NOW)


class OneStage(EpochRestarts):
    """Restarts whose curriculum stays where it is."""

    def __init__(self, store: Store, stage: BackwardStage) -> None:
        super().__init__(store, ArchiveTrajectories(store, no_player))
        self._backward.next_stage = lambda *_: stage  # type: ignore[method-assign]


class Played:
    """One trajectory, and the wins of its fights."""

    def __init__(self, rows: TrajectoryRows, fights: Sequence[WonFight] = ()) -> None:
        self._rows, self._fights = rows, list(fights)

    def rows(self, references: Sequence[TrajectoryRef]) -> list[TrajectoryRows]:
        return [self._rows for _ in references]

    def won_fights(self, reference: TrajectoryRef) -> list[WonFight]:
        return self._fights


def no_player() -> TrajectoryPlayer:
    raise AssertionError("nothing is played")


def test_an_order_pins_the_passes_of_the_last_epochs() -> None:
    store, kept = Store(), list[PassesRef]()
    restarts = OneStage(store, ARRIVED)
    for epoch in range(5):
        learnt = restarts.demonstrate(order(epoch, ARRIVED, kept), (), [one_pass(1, 5)])
        assert learnt is not None
        kept = learnt.passes
    assert [one.key for one in kept] == [f"models/passes-{epoch}" for epoch in (2, 3, 4)]
    assert len(kept) == PASSES_KEPT
    without = restarts.demonstrate(order(5, ARRIVED, kept), ())
    assert without is not None
    assert without.passes == kept, "an epoch without any adds none"


def test_passes_belong_to_one_trajectory_that_is_mastered() -> None:
    store = Store()
    other = ARRIVED.model_copy(update={"trajectory": TRAJECTORY.model_copy(update={"entry": 3})})
    for next_stage in (other, ARRIVED.model_copy(update={"left": [0, 50, 0]})):
        learnt = OneStage(store, next_stage).demonstrate(order(0, ARRIVED), (), [one_pass(1, 5)])
        assert learnt is not None
        assert learnt.passes == []
    assert store.objects == {}


def test_passes_of_legs_that_fail_are_imitated_more() -> None:
    store = Store()
    kept = store.save_passes(write_passes([one_pass(0, 10, 1.0), one_pass(1, 4, 2.0), one_pass(1, 4, 3.0)]), 0, 3)

    rows = read_demonstrations(order(1, ARRIVED, [kept]), store.read, Played(TWENTY))
    assert rows is not None
    chance = chances(rows, 0.0, 1.0, 2.0, 3.0)
    assert chance[0.0] == pytest.approx(0.5), "the demonstration has its half"
    assert chance[1.0] == pytest.approx(0.5 * 0.1 / 0.9), "failed by a tenth at least"
    assert chance[2.0] == chance[3.0] == pytest.approx(0.5 * 0.8 / 0.9 / 2)


def test_fights_that_were_won_in_other_ways_are_imitated_too() -> None:
    fight = Fight((0, 1), 10, 15, 0)
    wins = [FightWin(0, one_pass(1, 4, shown)) for shown in (1.0, 2.0)]
    easy = FightWin(0, one_pass(0, 8, 3.0))
    shown = Played(TWENTY, [WonFight(fight, wins), WonFight(Fight((0, 2), 18, 20, 0), [easy])])

    def imitated(stage: BackwardStage) -> Demonstrations:
        rows = read_demonstrations(order(1, stage), lambda _: b"", shown)
        assert rows is not None
        return rows

    before = imitated(ARRIVED.model_copy(update={"left": [0, 50, 0]}))
    assert len(before.actions) == 20, "until the curriculum has arrived, the demonstration alone"
    rows = imitated(ARRIVED)
    assert Counter(rows.observations[:, 0].tolist()) == {0.0: 20, 1.0: 4, 2.0: 4, 3.0: 8}
    chance = chances(rows, 0.0, 1.0, 2.0, 3.0)
    assert chance[0.0] == pytest.approx(0.5), "the demonstration has its half"
    assert chance[1.0] == chance[2.0] == pytest.approx(0.5 * 0.8 / 0.9 / 2)
    assert chance[3.0] == pytest.approx(0.5 * 0.1 / 0.9), "failed by a tenth at least"


def test_a_policy_that_may_strike_imitates_won_fights_from_the_beginning() -> None:
    wins = [FightWin(0, one_pass(1, 4, shown)) for shown in (1.0, 2.0)]
    shown = Played(TWENTY, [WonFight(Fight((0, 1), 10, 15, 0), wins)])
    striking = LEARNING.model_copy(update={"options": "strike/v1"})
    first = order(1, ARRIVED.model_copy(update={"left": [0, 50, 0]}), config=striking)
    rows = read_demonstrations(first, lambda _: b"", shown)
    assert rows is not None
    assert Counter(rows.observations[:, 0].tolist()) == {0.0: 20, 1.0: 4, 2.0: 4}
    assert float(rows.chances[:20].sum()) == pytest.approx(20 / 25), "the wins count as much as the fight's 5 steps"
    arrived = read_demonstrations(order(2, ARRIVED, config=striking), lambda _: b"", shown)
    assert arrived is not None
    assert Counter(arrived.observations[:, 0].tolist())[1.0] == 4, "then they are among the other ways alone"


def leading_back(share: float) -> RunConfig:
    """A run that imitates ways back by this share."""
    return LEARNING.model_copy(update={"imitation": LEARNING.imitation.model_copy(update={"recovery_share": share})})


def test_ways_back_are_imitated_by_their_share_and_all_alike() -> None:
    store = Store()
    kept = store.save_passes(write_passes([one_pass(0, 3, 1.0), one_pass(2, 9, 2.0)]), 0, 2)
    first = ARRIVED.model_copy(update={"left": [0, 50, 0]})

    def imitated(recoveries: PassesRef | None) -> Demonstrations:
        shown = ArchiveDemonstrations(imitated=[TRAJECTORY], backward=first, recoveries=recoveries)
        pinned = order(1, first, config=leading_back(0.4)).model_copy(update={"demonstrations": shown})
        rows = read_demonstrations(pinned, store.read, Played(TWENTY))
        assert rows is not None
        return rows

    assert len(imitated(None).actions) == 20, "an order without them"
    rows = imitated(kept)
    chance = chances(rows, 0.0, 1.0, 2.0)
    assert chance == {0.0: pytest.approx(0.6), 1.0: pytest.approx(0.2), 2.0: pytest.approx(0.2)}


def test_ways_that_lost_episodes_were_shown_are_half_of_the_ways_back() -> None:
    store = Store()
    own = [one_pass(0, 3, 1.0), replace(one_pass(1, 9, 2.0), back=True)]
    kept = store.save_passes(write_passes(own), 0, 2)
    found = store.save_passes(write_passes([one_pass(0, 3, 3.0), one_pass(2, 9, 4.0)]), 1, 2)
    shown = ArchiveDemonstrations(imitated=[TRAJECTORY], backward=ARRIVED, passes=[kept], recoveries=found)
    pinned = order(1, ARRIVED, config=leading_back(0.4)).model_copy(update={"demonstrations": shown})
    rows = read_demonstrations(pinned, store.read, Played(TWENTY))
    assert rows is not None
    chance = chances(rows, 0.0, 1.0, 2.0, 3.0, 4.0)
    assert chance == pytest.approx({0.0: 0.3, 1.0: 0.3, 2.0: 0.2, 3.0: 0.1, 4.0: 0.1})


class WaysBack(ArchiveTrajectories):
    """Trajectories to which one way leads back; they count how often it is looked for."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, no_player)
        self.looks = 0

    def recoveries(self, reference: TrajectoryRef) -> list[LegPass]:
        self.looks += 1
        return [one_pass(0, 3, reference.entry)]


def test_ways_back_are_looked_for_once_for_each_trajectory() -> None:
    store = Store()
    trajectories = WaysBack(store)
    restarts = EpochRestarts(store, trajectories)

    def next_order(last: EpochStart, stage: BackwardStage) -> EpochStart:
        restarts._backward.next_stage = lambda *_: stage  # type: ignore[method-assign]
        update = {"epoch": last.epoch + 1, "demonstrations": restarts.demonstrate(last, ())}
        return last.model_copy(update=update)

    other = ARRIVED.model_copy(update={"trajectory": TRAJECTORY.model_copy(update={"entry": 3})})
    first = order(0, ARRIVED, config=leading_back(0.4))
    orders = [first]
    for stage in (ARRIVED, ARRIVED, other, other):
        orders.append(next_order(orders[-1], stage))
    kept = [one.demonstrations.recoveries for one in orders[1:] if one.demonstrations is not None]
    assert trajectories.looks == 2
    assert kept[0] == kept[1] != kept[2] == kept[3]
    assert kept[3] is not None
    assert read_passes(store.objects[kept[3].key], "p")[0].observations[0, 0] == 3
    without = next_order(order(0, ARRIVED), ARRIVED)
    assert without.demonstrations is not None
    assert without.demonstrations.recoveries is None
    assert trajectories.looks == 2


def test_lost_episodes_are_shown_the_way_back_where_the_policy_imitates_it() -> None:
    trail = TrailMap({}, {})

    class Mapped(WaysBack):
        def trail(self, reference: TrajectoryRef) -> TrailMap:
            assert reference == TRAJECTORY
            return trail

    restarts = EpochRestarts(Store(), Mapped(Store()))
    restarts._backward.plan = lambda *_: RestartPlan((None,), {}, {})  # type: ignore[method-assign]
    for share, shown in ((0.4, trail), (0, None)):
        planned = restarts.plan(order(0, ARRIVED, config=leading_back(share)), None)
        assert planned is not None
        assert planned.trail is shown
