"""The hero is led astray from a trajectory, and the executor shows the way back."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from services.trainer.env.config import EnvConfig
from services.trainer.executor.outcome import GameView
from services.trainer.other_ways import recoveries
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.other_ways.recoveries import (
    PUSHES,
    STRIDE,
    TRIES,
    RandomWalk,
    TrailPlace,
    recoveries_of,
    trail_places,
)
from services.trainer.other_ways.room_ways import RoomPlace, RoomWalker, ThroughTheDoor, Ways, rooms_around, ways_of
from services.trainer.restarts.trajectory_player import TrajectoryPlayer
from shared.contracts.run import RunConfig
from tests.unit.trainer.walked_path import GARDEN, Walked

YARD, LANE, HOUSE = (0, 0x10), (0, 0x11), (3, 0x01)
VALE = EnvConfig.of_run(RunConfig(world="vale", frame_skip=4, difficulty="harmless", actions="actions/v1"))
WALK_TO_BLOCK = 1_230
"""Steps until the hero has pushed the block in the first room of the dungeon."""


def place(room: tuple[int, int], tile: tuple[int, int], *doors: tuple[int, int]) -> RoomPlace:
    return RoomPlace(room, tile, (10, 8), frozenset(doors))


def test_rooms_that_scroll_are_connected_both_ways() -> None:
    ways = ways_of([place(YARD, (2, 3)), place(YARD, (9, 3)), place(LANE, (0, 4)), place(LANE, (5, 5))])
    assert ways == {YARD: {LANE: (10, 3)}, LANE: {YARD: (-1, 4)}}


def test_a_door_leads_where_the_trajectory_went_through_it() -> None:
    through = [place(YARD, (4, 1), (4, 0), (8, 6)), place(HOUSE, (5, 7)), place(HOUSE, (2, 2))]
    assert ways_of(through) == {YARD: {HOUSE: (4, 0)}}
    through[1] = place(HOUSE, (5, 7), (5, 7))
    assert ways_of(through) == {YARD: {HOUSE: (4, 0)}, HOUSE: {YARD: (5, 7)}}, "and back by the door that he came by"


@pytest.mark.parametrize(
    "places",
    [
        [place(YARD, (4, 4)), place(HOUSE, (5, 7))],
        [place(YARD, (4, 4), (8, 6)), place(HOUSE, (5, 7))],
        [place(YARD, (9, 3)), place(HOUSE, (0, 3))],
    ],
    ids=["without a door", "far from a door", "at the edge of a room of another group"],
)
def test_what_takes_the_hero_elsewhere_is_no_way(places: list[RoomPlace]) -> None:
    assert ways_of(places) == {}


def test_the_shortest_way_leads_through_the_fewest_rooms() -> None:
    a, b, c, d = ((0, room) for room in range(4))
    ways: Ways = {a: {b: (10, 3), c: (5, 8)}, b: {a: (-1, 3), d: (5, 8)}, c: {a: (5, -1)}, d: {b: (5, -1)}}
    assert rooms_around(ways, a) == {b: [b], c: [c], d: [b, d]}
    assert rooms_around(ways, d)[c] == [b, a, c]
    assert (0, 9) not in rooms_around(ways, a)


@pytest.fixture
def dungeon() -> Iterator[Walked]:
    made = Walked(VALE, WALK_TO_BLOCK)
    yield made
    made.session.close()


def test_the_walker_crosses_rooms_to_a_tile(walked: Walked) -> None:
    session = walked.session
    session.begin(walked.end, 1)
    first = walked.places[min(walked.places)]
    assert session.state.key != first.room
    walker = RoomWalker(walked.ways, first.room, first.tile)
    for _ in range(600):
        action = walker.next(GameView(session.state, session.image))
        if action is None:
            break
        session.step(action)
    assert walker.arrived
    assert (session.state.key, GameView(session.state, session.image).standing) == (first.room, first.tile)


def test_the_walker_leaves_a_room_that_is_not_on_the_map_by_its_exits(walked: Walked) -> None:
    session, first = walked.session, walked.places[min(walked.places)]
    session.begin(walked.end, 1)
    here = session.state.key
    unknown = {room: {to: tile for to, tile in found.items() if to != here} for room, found in walked.ways.items()}
    del unknown[here]
    walker = RoomWalker(unknown, first.room, first.tile)
    assert here not in rooms_around(unknown, first.room)
    walked.lead(walker)
    assert walker.arrived
    assert (session.state.key, walked.here.tile) == (first.room, first.tile)


def test_the_walker_gives_up_where_no_exit_leads_on(walked: Walked) -> None:
    walked.session.begin(walked.end, 1)
    walker = RoomWalker({}, (0, 0xFE), (1, 1))
    walked.lead(walker)
    assert not walker.arrived


def test_places_of_the_trail_lie_apart_and_know_the_rooms_around(walked: Walked) -> None:
    found = trail_places(walked.places, walked.ways)
    steps = [one.step for one in found]
    assert min(after - step for step, after in pairwise(steps)) >= STRIDE
    entrances = {room[0]: room for room in reversed([walked.places[step].room for step in sorted(walked.places)])}
    others = [one for one in found if one.place.room != entrances[one.place.room[0]]]
    assert others
    assert all(one.away[0].room == entrances[one.place.room[0]] for one in others), "the hero goes on at the entrance"
    assert all(one.place.room not in {away.room for away in one.away} for one in found)


def test_a_recovery_ends_at_the_place_that_was_left(walked: Walked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recoveries, "TRIES", 1)
    step = max(walked.states)
    here = walked.places[step]
    trail = TrailPlace(step, here, [walked.places[min(walked.places)]], here)
    session = walked.session
    (found,) = recoveries_of(session, trail, 3, walked.ways, walked.states[step])
    assert found.leg == 3
    assert found.observations.shape == (len(found.actions), 148)
    assert (session.state.key, GameView(session.state, session.image).standing) == (trail.place.room, trail.place.tile)
    assert len(found.actions) < session.episode.steps, "the way there is not shown"


def test_a_moved_block_is_put_back_by_leaving_the_room(dungeon: Walked) -> None:
    session, room = dungeon.session, dungeon.places[max(dungeon.places)].room
    stay = [step for step, one in dungeon.places.items() if one.room == room]
    entry = dungeon.places[stay[0]]
    assert {one.moves for one in trail_places(dungeon.places, dungeon.ways) if one.place.room == room} == {True}
    start = dungeon.at(stay[0])
    for seed in range(20):
        session.begin(start, 1)
        dungeon.lead(RandomWalk(np.random.default_rng(seed), PUSHES))
        if dungeon.here.room == room and dungeon.here.layout != entry.layout:
            break
    back = ThroughTheDoor(dungeon.ways, entry)
    assert len(dungeon.lead(back)) == 2, "he leaves the room and comes back"
    assert back.arrived
    assert dungeon.here == entry


def test_a_trajectory_has_many_ways_back_and_always_the_same(walked: Walked) -> None:
    path = walked.trajectory()

    def ways() -> list[LegPass]:
        player = TrajectoryPlayer(GARDEN)
        found = player.recoveries(path, "path", player.outline(path, "path").legs)
        player.close()
        return found

    found = ways()
    places = len(trail_places(walked.places, walked.ways))
    assert places * TRIES >= len(found) > places * TRIES / 2
    assert len({one.actions.tobytes() for one in found}) > len(found) / 2, "few ways are equal"
    assert {one.leg for one in found} >= {0, 1}
    for one, other in zip(found, ways(), strict=True):
        np.testing.assert_array_equal(one.actions, other.actions)
