"""An episode that loses a fight of the trajectory again and again is shown how to fight, not how to run away."""

from collections.abc import Iterator

import pytest

from services.trainer.env.config import EnvConfig
from services.trainer.executor.outcome import A
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.other_ways.lost_episodes import LostEpisodes, LostMoment
from services.trainer.other_ways.trail_map import TrailMap
from services.trainer.state_archive.goal import enemy_health_of
from shared.contracts.run import RunConfig
from shared.game.emulator.start import StartState
from tests.unit.trainer.walked_path import Walked

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")
VALE = EnvConfig.of_run(RunConfig(world="vale", frame_skip=4, actions="actions/v1"))
WALK = 345
"""Steps of the walk-through until the hero has the sword and stands before two enemies."""
SEED = 7


@pytest.fixture(scope="module")
def vale() -> Iterator[Walked]:
    made = Walked(VALE, WALK)
    yield made
    made.session.close()


@pytest.fixture
def lost(vale: Walked) -> Iterator[LostEpisodes]:
    made = LostEpisodes(VALE, vale.session.game)
    made.begin_epoch(TrailMap.of(vale.places))
    yield made
    made.close()


def fight_room(vale: Walked) -> tuple[int, int]:
    """The room in which the walk ends."""
    return vale.places[max(vale.places)].room


def shown(vale: Walked, lost: LostEpisodes, start: StartState, enemies_left: int | None) -> LegPass | None:
    """What an episode is shown that has lost the way here. The session is at its start again afterwards."""
    fights = {} if enemies_left is None else {fight_room(vale): enemies_left}
    vale.session.begin(start, SEED)
    lost.look(vale.session, LostMoment(5, max(vale.places), WALK, fights))
    found = lost.drain()
    vale.session.begin(start, SEED)
    return found[0] if found else None


def replayed(vale: Walked, found: LegPass) -> list[tuple[int, int]]:
    """Play what was shown; the rooms on the way."""
    rooms = []
    for action in found.actions:
        vale.session.step(int(action))
        rooms.append(vale.session.state.key)
    return rooms


def test_in_the_room_of_the_fight_the_enemies_are_beaten(vale: Walked, lost: LostEpisodes) -> None:
    found = shown(vale, lost, vale.end, enemies_left=0)
    assert found is not None
    assert (found.leg, found.back, A in found.actions) == (5, True, True)
    assert enemy_health_of(vale.session.state) > 0
    room = vale.session.state.key
    assert set(replayed(vale, found)) == {room}
    assert enemy_health_of(vale.session.state) == 0


def test_the_way_to_the_fight_ends_with_the_fight(vale: Walked, lost: LostEpisodes) -> None:
    step = max(step for step, place in vale.places.items() if place.room != fight_room(vale))
    found = shown(vale, lost, vale.at(step), enemies_left=0)
    assert found is not None
    assert vale.session.state.key != fight_room(vale)
    assert replayed(vale, found)[-1] == fight_room(vale)
    assert enemy_health_of(vale.session.state) == 0


def test_enemies_as_weak_as_the_trajectory_left_them_are_left_alone(vale: Walked, lost: LostEpisodes) -> None:
    vale.session.begin(vale.end, SEED)
    found = shown(vale, lost, vale.end, enemies_left=enemy_health_of(vale.session.state))
    assert found is not None
    assert A not in found.actions
    assert set(replayed(vale, found)) == {fight_room(vale)}, "a room with a fight is not left"


def test_where_the_trajectory_does_not_fight_the_room_is_left_and_entered(vale: Walked, lost: LostEpisodes) -> None:
    found = shown(vale, lost, vale.end, enemies_left=None)
    assert found is not None
    assert len({vale.session.state.key, *replayed(vale, found)}) == 2
