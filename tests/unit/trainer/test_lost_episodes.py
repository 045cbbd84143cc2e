"""An episode that has lost the way goes on by itself; beside it the executor shows the way back."""

from collections import Counter
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
    lost.look(session, LostMoment(2, min(walked.places), 1))
    assert (RoomPlace.of(GameView(session.state, session.image)), session.episode.steps) == (here, 0)
    (found,) = lost.drain()
    assert (found.leg, found.back) == (2, True)
    for action in found.actions:
        session.step(int(action))
    assert (session.state.key, GameView(session.state, session.image).standing) == (first.room, first.tile)
    assert lost.drain() == []


def test_who_has_failed_at_the_place_goes_out_and_comes_in_again(walked: Walked, lost: LostEpisodes) -> None:
    here = walked.here
    lost.look(walked.session, LostMoment(2, max(walked.places), WALK))
    (found,) = lost.drain()
    rooms = set()
    for action in found.actions:
        walked.session.step(int(action))
        rooms.add(walked.session.state.key)
    assert len(rooms) == 2, "he leaves the room"
    assert walked.here.room == here.room, "and comes back"


def test_each_leg_is_tried_a_few_times_in_an_epoch(walked: Walked, lost: LostEpisodes) -> None:
    for leg in (1, 1, 2, *(1 for _ in range(TRIES_OF_A_LEG))):
        lost.look(walked.session, LostMoment(leg, min(walked.places), 1))
    assert Counter(one.leg for one in lost.drain()) == {1: TRIES_OF_A_LEG, 2: 1}
    trail = TrailMap.of(walked.places)
    lost.begin_epoch(trail)
    lost.look(walked.session, LostMoment(1, min(walked.places), 1))
    assert len(lost.drain()) == 1
    lost.begin_epoch(None)
    lost.look(walked.session, LostMoment(1, min(walked.places), 1))
    assert lost.drain() == [], "no trajectory, no way"


def test_no_way_is_shown_to_a_place_that_none_leads_to(walked: Walked, lost: LostEpisodes) -> None:
    lost.begin_epoch(TrailMap.of({0: walked.here._replace(room=(0, 0xFE))}))
    lost.look(walked.session, LostMoment(0, 0, 1))
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


def test_who_is_ahead_on_the_trail_is_not_led_back_to_its_beginning() -> None:
    a, b, c, d = ((0, room) for room in range(4))
    rooms = [a, a, b, b, c, b, d]
    trail = TrailMap(
        {step: RoomPlace(room, (step, 0), (10, 8), frozenset()) for step, room in enumerate(rooms)},
        {a: {b: (10, 3)}, b: {a: (-1, 3), c: (5, 8), d: (10, 4)}, c: {b: (5, -1)}, d: {b: (-1, 4)}},
    )

    def goes_on_at(here: tuple[int, int], begin: int, end: int) -> int:
        return trail.ahead(here, begin, end).place.tile[0]

    assert goes_on_at(a, 0, 5) == 0, "where he should be, with all that is to be done there"
    assert goes_on_at(b, 0, 5) == 3, "in a later room, at its end"
    assert goes_on_at(d, 0, 5) == 3, "else in the nearest room"
    assert goes_on_at(d, 0, 2) == 1
    assert goes_on_at(c, 2, 7) == 4, "each room counts"
    assert goes_on_at((0, 9), 2, 7) == 2, "from a room without a way: where he should be"


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
