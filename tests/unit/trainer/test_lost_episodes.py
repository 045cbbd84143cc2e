"""An episode that has lost the way goes on by itself; beside it the executor shows the way back."""

from collections.abc import Iterator

import numpy as np
import pytest

from services.trainer.executor.outcome import GameView
from services.trainer.other_ways.lost_episodes import TRIES_OF_A_LEG, LostEpisodes, LostMoment
from services.trainer.other_ways.room_ways import RoomPlace
from services.trainer.other_ways.trail_map import TrailMap
from services.trainer.restarts.plan import RestartPlan
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from services.trainer.state_archive.cell import cell_of
from services.trainer.state_archive.goal import ArchiveGoal, TrajectoryLeg
from shared.contracts.ids import RunId
from shared.contracts.learning.restarts import ImitationConfig, RestartsConfig
from shared.contracts.run import RunConfig
from tests.unit.trainer.walked_path import GARDEN, WALK, Walked

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")


@pytest.fixture(scope="module")
def walked() -> Iterator[Walked]:
    made = Walked(GARDEN, WALK)
    yield made
    made.session.close()


@pytest.fixture
def lost(walked: Walked) -> Iterator[LostEpisodes]:
    """Leads back to the places of the walk. The episode of the walk is at its end."""
    made = LostEpisodes(GARDEN, walked.session.game)
    made.begin_epoch(TrailMap.of(walked.places))
    walked.session.begin(walked.end, 7)
    yield made
    made.close()


def test_the_way_back_leads_to_where_the_episode_should_be(walked: Walked, lost: LostEpisodes) -> None:
    session, first = walked.session, walked.places[min(walked.places)]
    here = RoomPlace.of(GameView(session.state, session.image))
    assert here.room != first.room
    lost.look(session, LostMoment(2, min(walked.places)))
    assert (RoomPlace.of(GameView(session.state, session.image)), session.episode.steps) == (here, 0)
    (found,) = lost.drain()
    assert (found.leg, found.back) == (2, True)
    for action in found.actions:
        session.step(int(action))
    assert (session.state.key, GameView(session.state, session.image).standing) == (first.room, first.tile)
    assert lost.drain() == []


def test_who_has_failed_at_the_place_goes_out_and_comes_in_again(walked: Walked, lost: LostEpisodes) -> None:
    here = walked.here
    lost.look(walked.session, LostMoment(2, max(walked.places)))
    (found,) = lost.drain()
    rooms = set()
    for action in found.actions:
        walked.session.step(int(action))
        rooms.add(walked.session.state.key)
    assert len(rooms) == 2, "he leaves the room"
    assert walked.here.room == here.room, "and comes back"


def test_each_leg_is_tried_a_few_times_in_an_epoch(walked: Walked, lost: LostEpisodes) -> None:
    for leg in (1, 1, 2, 1, 1):
        lost.look(walked.session, LostMoment(leg, min(walked.places)))
    assert [one.leg for one in lost.drain()] == [1] * TRIES_OF_A_LEG + [2]
    trail = TrailMap.of(walked.places)
    lost.begin_epoch(trail)
    lost.look(walked.session, LostMoment(1, min(walked.places)))
    assert len(lost.drain()) == 1
    lost.begin_epoch(None)
    lost.look(walked.session, LostMoment(1, min(walked.places)))
    assert lost.drain() == [], "no trajectory, no way"


def test_no_way_is_shown_to_a_place_that_none_leads_to(walked: Walked, lost: LostEpisodes) -> None:
    lost.begin_epoch(TrailMap.of({0: walked.here._replace(room=(0, 0xFE))}))
    lost.look(walked.session, LostMoment(0, 0))
    assert lost.drain() == []


def test_the_map_knows_each_stay_and_where_it_began(walked: Walked) -> None:
    trail, steps = TrailMap.of(walked.places), [*walked.places]
    stays = [
        step
        for step, after in zip(steps[1:], steps, strict=False)
        if trail.places[step].room != trail.places[after].room
    ]
    assert stays
    for step in stays:
        assert trail.at(step).place == trail.at(step).entry == trail.places[step]
        assert trail.at(step + 1).entry == trail.places[step]
    assert trail.at(-5).place == trail.places[steps[0]]
    assert trail.at(10_000).place == trail.places[steps[-1]]


def test_an_epoch_returns_the_ways_that_its_lost_episodes_were_shown(walked: Walked) -> None:
    config = RunConfig(
        world="garden",
        frame_skip=4,
        env_runners=0,
        restarts=RestartsConfig(share=0.5, mode="backward"),
        imitation=ImitationConfig(mode="sil", source="archive", recovery_share=0.3),
    )
    session = walked.session
    session.begin(walked.end, 1)
    goal = ArchiveGoal(cell_of(session.state, session.counters.values)._replace(room=0xFE))
    legs = (TrajectoryLeg(0, 10, goal),)

    def ways_back(trail: TrailMap | None) -> list[bool]:
        games = RLlibVectorEnv({SESSION_CONFIG: TrainingSessionConfig(RunId("play"), config), "num_envs": 1})
        games.begin_epoch(EpochPlan(0, restarts=RestartPlan((None,), {}, {}, goal, legs=legs, trail=trail)))
        games.reset()
        for action in np.random.default_rng(0).integers(1, 5, 300):
            games.step(np.array([action]))
        found = [one.back for one in games.collect(final=True).passes]
        games.close()
        return found

    assert ways_back(None) == []
    assert ways_back(TrailMap.of(walked.places)) == [True]
