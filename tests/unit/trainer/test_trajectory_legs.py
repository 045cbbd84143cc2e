"""A trajectory is cut into legs at achievements, and on long ways in between; episodes pass them."""

from collections.abc import Sequence

from services.trainer.domain.backward import (
    OPENING,
    earliest_mastered,
    leg_at,
    leg_points,
    longest_episode,
    longest_pass,
    smoothed_success,
    spread_points,
)
from services.trainer.domain.epoch_metrics import LEG, EpisodeSummary
from services.trainer.env.game_session import GameSession
from services.trainer.other_ways.lost_episodes import LostMoment
from services.trainer.restarts.backward import outcomes_by_leg
from services.trainer.restarts.leg_limits import AFTER_GOAL, LegLimits
from services.trainer.restarts.passed_legs import PassedLegs
from services.trainer.restarts.trail import LOOK_AHEAD, Trail
from services.trainer.state_archive.cell import ArchiveCell, cell_of
from services.trainer.state_archive.goal import ArchiveGoal, TrailPoint, TrajectoryLeg
from services.trainer.state_archive.legs import LEG_STEPS, TrajectoryMoment, legs_of, with_trails
from shared.contracts.learning.restarts import RestartsConfig
from shared.game.emulator.start import true_start
from shared.game.observation.counters import LASTING
from tests.unit.trainer.archived_play import CONFIG, leg


def moments(*stays: tuple[int, int, int, int]) -> list[TrajectoryMoment]:
    """A way through rooms: (steps in it, room, counter, rupees) of each stay."""
    found: list[TrajectoryMoment] = []
    for steps, room, counter, rupees in stays:
        cell = ArchiveCell(0, room, 1, 1, (counter,))
        found += [TrajectoryMoment(len(found) + step, cell, rupees) for step in range(steps)]
    return found


def ends(*stays: tuple[int, int, int, int]) -> list[tuple[int, int, int, bool]]:
    """Where the legs end: step, room, rupees, and whether that is on the way."""
    return [(leg.end, leg.goal.cell.room, leg.goal.rupees, leg.on_the_way) for leg in legs_of(moments(*stays))]


def test_a_leg_ends_where_something_lasting_is_achieved() -> None:
    assert ends((30, 1, 0, 0), (30, 2, 0, 0), (30, 2, 1, 0), (5, 2, 2, 0)) == [(60, 2, 0, False), (90, 2, 0, False)]
    assert ends((30, 1, 0, 0)) == []
    assert ends() == []


def test_a_payment_alone_is_no_achievement() -> None:
    """What is bought counts, or it is used up: a path that turns back for a potion achieves nothing by it."""
    assert "payments" not in LASTING
    assert ends((30, 1, 0, 9), (30, 1, 0, 2), (1, 1, 1, 2)) == [(60, 1, 0, False)]
    bought = ends((LEG_STEPS, 1, 0, 9), (LEG_STEPS, 2, 0, 9), (1, 2, 1, 2))
    assert [rupees for _, _, rupees, _ in bought] == [7, 0], "a payment that achieves something is needed"


def test_a_long_way_is_cut_where_it_enters_a_room() -> None:
    found = ends((70, 1, 0, 0), (70, 2, 0, 0), (70, 3, 0, 0), (10, 3, 1, 0))
    assert found == [(140, 3, 0, True), (210, 3, 0, False)], "room 2 comes too early"
    assert [leg.begin for leg in legs_of(moments((140, 1, 0, 0), (9, 3, 0, 0), (9, 3, 1, 0)))] == [0, 140]


def test_a_way_in_one_room_is_cut_where_it_finds_money_to_pay() -> None:
    found = ends((LEG_STEPS, 1, 0, 0), (LEG_STEPS, 1, 0, 5), (LEG_STEPS, 1, 0, 9), (1, 1, 1, 2))
    assert found == [(100, 1, 3, True), (200, 1, 7, True), (300, 1, 0, False)]
    unpaid = ends((LEG_STEPS, 1, 0, 0), (LEG_STEPS, 1, 0, 5), (1, 1, 1, 5))
    assert unpaid == [(200, 1, 0, False)], "what is never paid need not be found"


def test_a_way_that_comes_back_to_its_beginning_is_not_cut_there() -> None:
    assert ends((10, 1, 0, 0), (100, 2, 0, 0), (50, 1, 0, 0), (1, 1, 1, 0)) == [(160, 1, 0, False)]


class Played:
    """A session of the garden, and goals seen from where its hero stands."""

    def __init__(self, **changes: bool) -> None:
        self.session = GameSession(CONFIG.environment(**changes))
        self.session.begin(true_start(self.session.game), 1)
        self.here = ArchiveGoal(cell_of(self.session.state, self.session.counters.values))
        self.elsewhere = ArchiveGoal(self.here.cell._replace(room=self.here.cell.room + 1))
        self.achieved = self.elsewhere._replace(
            cell=self.elsewhere.cell._replace(counters=tuple(one + 1 for one in self.here.cell.counters))
        )


def passed(legs: Sequence[TrajectoryLeg], *cells: tuple[ArchiveCell, int], first: int = 0) -> list[int]:
    """How many legs an episode passes in each of these cells, with so much money."""
    episode = PassedLegs(legs, first)
    return [episode.enter(cell, rupees, control=True) for cell, rupees in cells]


def at(room: int, *counters: int) -> ArchiveCell:
    return ArchiveCell(0, room, 1, 1, counters)


def way(room: int, rupees: int = 0) -> TrajectoryLeg:
    """A leg that ends on the way, in this room with so much money."""
    return TrajectoryLeg(0, 10, ArchiveGoal(at(room, 0), rupees), on_the_way=True)


def test_places_on_the_way_are_passed_one_by_one() -> None:
    item = TrajectoryLeg(10, 20, ArchiveGoal(at(3, 1), rupees=5), gains=(1,))
    assert passed([way(1), way(2), way(1)], (at(1, 0), 0)) == [1], "the second place comes first"
    assert passed([way(2), way(1)], (at(1, 0), 0), (at(2, 0), 0), (at(1, 0), 0)) == [0, 1, 1]
    assert passed([way(1, rupees=1)], (at(1, 0), 0), (at(1, 0), 1)) == [0, 1], "the rest of the path pays it"
    there = (at(3, 0), 5), (at(3, 1), 5)
    assert passed([way(1), way(2), item], *there) == [0, 3], "what is achieved passes the places on the way to it"
    poor = (at(3, 0), 0), (at(3, 1), 0), (at(4, 1), 5)
    assert passed([way(1), item], *poor) == [0, 0, 2], "once the episode has what the rest of the path pays"
    later = TrajectoryLeg(20, 30, ArchiveGoal(at(4, 2)), gains=(1,))
    bought = (at(3, 0), 0), (at(3, 1), 0), (at(4, 1), 0), (at(4, 2), 0)
    assert passed([item, later], *bought) == [0, 0, 0, 2], "with what comes later, it was paid"


START, KEY, DOOR = (2, 0, 0, 0), (2, 1, 0, 0), (4, 2, 0, 1)
DETOUR = [(1, 0, 0, 0), START, KEY, (3, 1, 0, 0), (3, 1, 1, 0), (4, 1, 1, 0), (4, 2, 1, 1), (4, 3, 1, 1)]
"""A way: room, and what three counters show. A key in room 2, a chest in room 3, in room 4 a door with a key, a key."""


def walked(*stays: tuple[int, ...], first: int = 0) -> list[int]:
    """How many legs of DETOUR an episode passes in each stay."""
    found = [TrajectoryMoment(10 * step, at(*stay), 0) for step, stay in enumerate(DETOUR)]
    return passed(legs_of(found), *((at(*stay), 0) for stay in stays), first=first)


def test_what_comes_early_counts_in_its_turn() -> None:
    assert walked((1, 0, 0, 0), START, KEY, (3, 1, 0, 0), (3, 1, 1, 0)) == [0, 0, 1, 0, 1], "all in order"
    assert walked(START, KEY, (4, 1, 0, 0), DOOR) == [0, 1, 0, 0], "the chest is still to be taken"
    made_up = (3, 2, 0, 1), (3, 2, 1, 1), (3, 2, 1, 1)
    assert walked(START, KEY, (4, 1, 0, 0), DOOR, *made_up) == [0, 1, 0, 0, 0, 2, 0], "then the door stays open"


def test_no_achievement_is_left_out() -> None:
    """Whoever fights without the sword that he left out is where he cannot go on."""
    legs = [TrajectoryLeg(10 * room, 10 * room + 10, ArchiveGoal(at(room, room + 1)), gains=(1,)) for room in range(4)]
    early = (at(9, 0), 0), (at(2, 1), 0), (at(0, 2), 0), (at(3, 3), 0), (at(1, 4), 0)
    assert passed(legs, *early) == [0, 0, 1, 0, 3], "a chest on the way to the first goal, then that one, then the rest"


def test_a_chest_with_money_may_be_left_out_once_the_money_is_there() -> None:
    chest = tuple(int(name == "chests") for name in LASTING)
    item = tuple(int(name in ("items", "chests")) for name in LASTING)
    nothing = tuple(0 for _ in LASTING)
    legs = [
        TrajectoryLeg(0, 10, ArchiveGoal(at(1, *chest), rupees=20), gains=chest),
        TrajectoryLeg(10, 20, ArchiveGoal(at(2, *item), rupees=20), gains=item),
    ]
    left_out = (at(2, *nothing), 0), (at(2, *item), 5), (at(3, *item), 20)
    assert passed(legs, *left_out) == [0, 0, 2], "found elsewhere, the money does as well"
    assert passed(legs[::-1], (at(1, *nothing), 20), (at(1, *chest), 20)) == [0, 0], "an item is not left out"


def test_an_early_achievement_of_a_room_is_not_taken_for_its_later_one() -> None:
    """A fight in room 1, a switch in room 2, and the chest in room 1 that appears once the fight is won."""
    fight, switch, chest = (
        TrajectoryLeg(10 * step, 10 * step + 10, ArchiveGoal(at(room, step + 1)), gains=(1,))
        for step, room in enumerate((1, 2, 1))
    )
    begun, evaded = (at(1, 0), 0), ((at(2, 0), 0), (at(2, 1), 0))
    assert passed([fight, switch, chest], begun, *evaded) == [0, 0, 0], "the chest waits for the fight"
    assert passed([fight, switch, chest], begun, *evaded, (at(1, 2), 0)) == [0, 0, 0, 2], "the switch stays solved"


def test_an_achievement_is_known_by_its_room() -> None:
    """The second of two rooms was solved first: the counts are those of the first leg, and do not pass it."""
    legs = [
        TrajectoryLeg(0, 10, ArchiveGoal(at(1, 1)), gains=(1,)),
        TrajectoryLeg(10, 20, ArchiveGoal(at(2, 2)), gains=(1,)),
    ]
    assert passed(legs[:1], (at(2, 0), 0), (at(2, 1), 0)) == [0, 0]
    assert passed(legs, (at(2, 0), 0), (at(2, 1), 0), (at(1, 1), 0), (at(1, 2), 0)) == [0, 0, 0, 2], "it is made up for"


def test_less_than_a_leg_achieves_does_not_pass_it() -> None:
    assert walked(KEY, (5, 1, 0, 0), (5, 2, 0, 1)) == [0, 0, 0], "it is another room"
    assert walked(KEY, (4, 1, 0, 0), (4, 2, 0, 0)) == [0, 0, 0], "the door is still shut: it is not the last key"
    assert walked(KEY, (3, 2, 0, 1), DOOR) == [0, 0, 0], "it was opened in another room"
    assert walked(DOOR, first=1) == [0], "what the episode begins with is not gained"


def test_what_is_gained_without_control_counts_after_it() -> None:
    """What ends a dungeon takes the hero out of it: he has control in another room than that of the gain."""
    leg = TrajectoryLeg(0, 10, ArchiveGoal(at(2, 1)), gains=(1,))
    episode = PassedLegs([leg], 0)
    assert episode.enter(at(1, 0), 0, control=True) == 0
    assert episode.enter(at(1, 1), 0, control=False) == 0
    assert episode.enter(at(2, 1), 0, control=False) == 1


def test_an_episode_goes_on_while_it_reaches_one_goal_after_another() -> None:
    played = Played()
    first, second = TrajectoryLeg(0, 30, played.here), TrajectoryLeg(30, 40, played.achieved)

    def steps_to_truncation(*legs: TrajectoryLeg, begun_on: int | None = None) -> int:
        played.session.begin(true_start(played.session.game), 1)
        limits = LegLimits(legs, begun_on, played.session)
        limits.look(played.session)
        made = 1
        while not played.session.step(0).truncated:
            made += 1
        return made

    assert steps_to_truncation(second, second) == longest_episode(40), "the first goal is not reached in time"
    assert steps_to_truncation(first, second) == longest_episode(10), "the second leg has its time"
    assert steps_to_truncation(first._replace(on_the_way=True), second, begun_on=0) == longest_episode(10)
    assert steps_to_truncation(first, second._replace(mastered=False)) == AFTER_GOAL, "it has episodes of its own"
    unmastered = first._replace(mastered=False)
    assert steps_to_truncation(unmastered, second, begun_on=0) == AFTER_GOAL, "its steps go into more such episodes"
    played.session.close()


def test_each_point_of_the_trail_renews_the_time() -> None:
    """A shortened trajectory wins a fight faster than a policy does, which is not lost while it hits."""
    played = Played()
    here = played.here.cell
    trail = (TrailPoint(25, (here.group, here.room, here.column, here.row)),)
    limits = LegLimits([TrajectoryLeg(0, 30, played.achieved, trail=trail)], None, played.session)
    for _ in range(150):
        played.session.step(0)
    limits.look(played.session)
    left = 1
    while not played.session.step(0).truncated:
        left += 1
    assert left == longest_episode(30 - 25)
    played.session.close()


def test_an_episode_that_has_lost_the_way_is_led_back_once() -> None:
    played = Played()
    first, own = TrajectoryLeg(0, 10, played.here), TrajectoryLeg(0, 30, played.achieved)

    def steps(begun_on: int | None, leg: TrajectoryLeg = own) -> int:
        played.session.begin(true_start(played.session.game), 1)
        limits = LegLimits([first, leg], begun_on, played.session)
        limits.look(played.session)
        made = 1
        while not played.session.step(0).truncated:
            limits.look(played.session)
            made += 1
        return made

    assert steps(None) == 2 * longest_episode(30) - 1
    assert steps(0) == longest_episode(30), "an episode of a leg is one try"
    assert steps(None, own._replace(mastered=False)) == AFTER_GOAL, "it ends before this leg"
    played.session.close()


def test_an_episode_that_has_lost_the_way_says_where_it_should_be() -> None:
    played = Played()
    here = played.here.cell
    trail = (TrailPoint(15, (here.group, here.room, here.column, here.row)),)
    begun, leg = TrajectoryLeg(0, 10, played.here), TrajectoryLeg(10, 30, played.achieved)

    def lost(begun_on: int | None, *legs: TrajectoryLeg) -> list[LostMoment]:
        played.session.begin(true_start(played.session.game), 1)
        limits = LegLimits(legs, begun_on, played.session)
        found = []
        for _ in range(2 * longest_episode(30)):
            limits.look(played.session)
            found += [limits.lost] if limits.lost else []
            if played.session.step(0).truncated:
                break
        return found

    assert lost(None, begun, leg) == [LostMoment(1, 10, 30)], "at the beginning of the leg, once"
    assert lost(None, leg._replace(trail=trail)) == [LostMoment(0, 15, 30)], "or at the last point that it passed"
    assert lost(0, begun, leg) == [LostMoment(1, 10, 30)], "also if its time ends for good"
    hits = [TrailPoint(step, (4, 0x42, 1, 1), left) for step, left in ((17, 5), (19, 2))]
    fought = leg._replace(trail=(*trail, *hits))
    assert lost(None, fought) == [LostMoment(0, 15, 30, {(4, 0x42): 2})], "and where the trajectory fights on the leg"
    played.session.close()


def test_a_trail_holds_the_coarse_tiles_on_the_way_to_a_goal() -> None:
    there = [TrajectoryMoment(step, ArchiveCell(0, 1, step // 8, 0, (step // 20,)), 0) for step in range(41)]
    first, second = with_trails(legs_of(there), there)
    assert [point.step for point in first.trail] == [8, 16]
    assert [point.step for point in second.trail] == [24, 32, 40]
    assert second.trail[0].place == (0, 1, 3, 0)


def test_an_episode_passes_the_points_of_its_trail_in_their_order() -> None:
    trail = tuple(TrailPoint(10 * number, (0, 1, number, 0)) for number in range(1, 10))
    legs = [leg(0, 95)._replace(trail=trail), leg(95, 100)]

    def passed(*columns: int, begin: int = 0) -> list[int]:
        walked = Trail(legs, 0, begin)
        return [walked.look(0, (0, 1, column, 0)) for column in columns]

    assert passed(1, 2, 2, 1, 3) == [1, 1, 0, 0, 1], "a point pays once"
    assert passed(3, 4) == [3, 1], "a corner may be cut"
    assert passed(LOOK_AHEAD + 1) == [0], "a loop may not"
    assert passed(4, 5, begin=40) == [0, 1], "what lies before the start is passed"
    assert Trail(legs, 0, 0).look(1, (0, 1, 1, 0)) == Trail(legs, 0, 0).look(2, (0, 1, 1, 0)) == 0


def test_after_a_death_the_trail_leads_back_without_its_loops() -> None:
    def trail(step: int, *places: tuple[int, int]) -> tuple[TrailPoint, ...]:
        return tuple(TrailPoint(step + place, (0, *places[place], 0)) for place in range(len(places)))

    goal = ArchiveGoal(at(0))
    there = trail(10, (1, 0), (2, 0), (2, 1), (1, 1), (4, 0), (4, 1), (4, 2), (1, 1), (3, 0))
    legs = [TrajectoryLeg(0, 50, goal, trail=there), TrajectoryLeg(50, 100, goal, trail=trail(60, (3, 1), (5, 0)))]
    found = Trail(legs, 1, 85)
    assert found.turn_back(1, (0, 2)) == 100 - 12, "from the last time in this room to the goal"
    assert [found.look(1, (0, *place, 0)) for place in ((2, 1), (1, 1), (3, 0), (3, 1), (5, 0))] == [1] * 5
    assert Trail(legs, 1, 85).turn_back(1, (0, 9)) == 100, "from a room that it never saw, the whole way"
    assert Trail(legs, 1, 85).turn_back(1, (0, 5)) == 100 - 61, "from one on this leg, the rest of it"


def test_each_hit_at_an_enemy_is_a_point_of_the_trail() -> None:
    def moment(step: int, room: int, enemy_health: int) -> TrajectoryMoment:
        return TrajectoryMoment(step, ArchiveCell(0, room, 0, 0, (step // 7,)), 0, enemy_health)

    seen = [moment(step, 1 + (step > 1), health) for step, health in enumerate((0, 3, 7, 7, 5, 4, 0, 0))]
    (leg,) = with_trails(legs_of(seen), seen)
    assert [(point.step, point.enemy_health) for point in leg.trail] == [(2, None), (4, 5), (5, 4), (6, 0)]

    def passed(*looks: tuple[int, int]) -> list[int]:
        trail = Trail([leg], 0, 0)
        return [trail.look(0, (0, room, 0, 0), health) for room, health in looks]

    assert passed((2, 7), (2, 6), (2, 5), (2, 1), (2, 0)) == [1, 0, 1, 1, 1], "at the latest when as little is left"
    assert passed((2, 7), (2, 0)) == [1, 3]
    assert passed((2, 0), (2, 0)) == [1, 0], "without a hit, in a room whose enemies do not come again"
    assert passed((1, 7), (1, 0), (2, 7)) == [0, 0, 1], "in another room"


def test_after_a_death_an_episode_has_the_time_of_the_way_back() -> None:
    played = Played(terminal_on_death=False)
    legs = [TrajectoryLeg(0, 30, played.here), TrajectoryLeg(30, 40, played.achieved)]
    limits = LegLimits(legs, None, played.session)
    assert limits.look(played.session).goals == 1
    played.session.emulator.poke(0xCC34, 0xFF)
    steps_to_control = 0
    while played.session.step(0).died or not played.session.state.control:
        limits.look(played.session)
        assert limits.lost is None
        steps_to_control += 1
    limits.look(played.session)
    assert limits.lost == LostMoment(1, 30, 40)
    left = 1
    while not played.session.step(0).truncated:
        left += 1
    assert steps_to_control > 1
    assert left == longest_episode(40)
    played.session.close()


def test_after_the_curriculum_more_episodes_begin_where_more_fail() -> None:
    legs = [leg(0, 100), leg(100, 200), leg(200, 300)]
    points = spread_points(legs, [1.0, 0.2, 0.7], 3)
    assert [sum(leg_at(legs, point) == number for point in points) for number in range(3)] == [4, 33, 13]


def test_starts_lie_at_least_a_step_apart() -> None:
    near = RestartsConfig(share=0.5, mode="backward", stride=1, window=8)
    assert leg_points(leg(0, 100), 100, near, 8) == list(range(99, 91, -1))


def test_where_a_leg_ends_the_next_one_begins() -> None:
    assert [leg_at([leg(0, 20), leg(20, 60)], point) for point in (0, 19, 20, 59, 60)] == [0, 0, 1, 1, 2]


def test_as_many_successes_as_the_threshold_suffice() -> None:
    assert earliest_mastered(50, {40: [True, False, True, False], 30: [True, False, False]}, 0.5) == 40


def test_a_pass_may_take_twice_as_long_as_shown_beside_its_opening() -> None:
    assert longest_pass(leg(20, 60)) == 2 * 40 + OPENING


def test_success_is_smoothed_over_the_epochs() -> None:
    assert smoothed_success([0.5, 0.5, 1.0], {0: [True] * 10, 2: [False] * 30}) == [0.75, 0.5, 0.25]


def test_an_episode_passes_the_legs_from_its_start_to_where_it_ends() -> None:
    def passed(start: str, legs: int, *, complete: bool = True) -> EpisodeSummary:
        return EpisodeSummary("e", 9, 0.0, {}, {LEG: float(legs)}, complete, start == "start", start)

    legs = [leg(0, 20), leg(20, 60), leg(60, 90)]
    played = [
        passed("start", 1),
        passed("trajectory-25", 3),
        passed("trajectory-70", 2, complete=False),
        passed("archive-3", 2),
    ]
    assert outcomes_by_leg(played, legs) == {0: [True], 1: [False, True], 2: [True]}
