"""The backward curriculum: episodes begin ever earlier on one demonstration, as the policy reaches its goals.

Salimans & Chen 2018 (arXiv:1812.03381) move one start backwards from the end while the policy trains. Here each leg of
the demonstration, from one achievement to the next, has a curriculum of its own, and all of them run at the same time:
episodes stay short, and a long demonstration is learnt as fast as its longest leg.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import fmean
from typing import Final

from services.trainer.state_archive.goal import TrajectoryLeg
from shared.contracts.learning.restarts import RestartsConfig

MIN_POINTS: Final = 2  # of a leg that is not mastered yet
ROUNDS: Final = 4  # times that an epoch has the steps to try each of its points; fewer episodes say too little
KEPT_EVERY: Final = 3  # epochs; a mastered leg has episodes of its own in each third one, so that it is not forgotten
SPREAD: Final = 50  # points on the whole demonstration after the curriculum has arrived
MIN_FAILURE: Final = 0.1  # a leg that fewer episodes fail counts as if this share did, so that it is not forgotten
FIRST_SUCCESS: Final = 0.5  # of a leg that no episode has tried yet
PRIOR_EPISODES: Final = 10  # the success so far counts as much as so many episodes
ARRIVED_IMITATION: Final = 0.1  # of the weight of imitation: a policy that only repeats cannot correct itself
OWN_IMITATION: Final = 0.3  # of it, once half of what is imitated are the policy's own passes: they hold corrections
GOLDEN: Final = (5**0.5 - 1) / 2  # its multiples fill the unit interval evenly
MIN_EPISODES: Final = 3  # from one start; fewer say too little about it
OPENING: Final = 12
"""Most random moves before an episode. Seeds vary only what the game draws by itself, such as enemies: in rooms without
them the same actions would always lead to the goal."""
MIN_LENGTH: Final = 100  # steps; how long an episode may take at least
LENGTHS: Final = 2  # an episode may take so many times as long as the demonstration to the leg's goal


def leg_points(leg: TrajectoryLeg, left: int, config: RestartsConfig, count: int) -> list[int]:
    """The steps of the demonstration at which episodes of one leg begin, latest first.

    From `left` steps after its beginning on the policy reaches its goal. The points before lie close together and then
    ever farther apart, up to `window` strides: a policy that knows little reaches the goal from near, one that knows
    much from afar. A mastered leg keeps its beginning, so that it is not forgotten.
    """
    if not left:
        return [leg.begin]
    reach = config.stride * config.window
    distances = (max(number, reach * number**2 // count**2) for number in range(1, count + 1))
    return list(dict.fromkeys(max(leg.begin, leg.begin + left - distance) for distance in distances))


def points_of_legs(
    legs: Sequence[TrajectoryLeg], left: Sequence[int], config: RestartsConfig, steps: int, epoch: int
) -> list[list[int]]:
    """The points of each leg in an epoch of so many steps at this stage; of a mastered leg in some epochs none.

    A leg has `window` points, or as many as the epoch can try often enough to judge them.
    """
    due = [bool(rest) or (number + epoch) % KEPT_EVERY == 0 for number, rest in enumerate(left)]
    planned = list(zip(legs, left, due, strict=True))
    points: list[list[int]] = []
    for count in range(config.window, min(config.window, MIN_POINTS) - 1, -1):
        points = [leg_points(leg, rest, config, count) if wanted else [] for leg, rest, wanted in planned]
        cost = sum(longest_episode(leg.end - point) for leg, own in zip(legs, points, strict=True) for point in own)
        if ROUNDS * cost <= steps:
            break
    return points


def leg_at(legs: Sequence[TrajectoryLeg], point: int) -> int:
    """The number of the leg on which a point of the demonstration lies."""
    return sum(leg.end <= point for leg in legs)


def spread_points(legs: Sequence[TrajectoryLeg], success: Sequence[float], epoch: int) -> list[int]:
    """Where episodes begin after the curriculum has arrived: everywhere, and more of them where more fail.

    `success` is the share of episodes that pass each leg; with equal shares the points lie evenly. They are shifted
    from epoch to epoch.
    """
    failure = failures(success)
    bounds = [0.0, *accumulate(share * (leg.end - leg.begin) for share, leg in zip(failure, legs, strict=True))]
    points: set[int] = set()
    for number in range(SPREAD):
        place = (number + epoch * GOLDEN % 1) * bounds[-1] / SPREAD
        leg = min(bisect_right(bounds, place), len(legs)) - 1
        points.add(legs[leg].begin + int((place - bounds[leg]) / failure[leg]))
    return sorted(points)


def failures(success: Sequence[float]) -> list[float]:
    """How much each leg counts in what is played and imitated: by the share of the episodes that fail it."""
    return [max(MIN_FAILURE, 1 - passed) for passed in success]


def smoothed_success(success: Sequence[float], outcomes: Mapping[int, Sequence[bool]]) -> list[float]:
    """The share of episodes that pass each leg, after those of an epoch: `outcomes` says by leg which passed it."""
    smoothed = []
    for leg, before in enumerate(success):
        passed = outcomes.get(leg, ())
        smoothed.append((PRIOR_EPISODES * before + sum(passed)) / (PRIOR_EPISODES + len(passed)))
    return smoothed


def true_starts(points: int, share: float) -> int:
    """How many starts beside so many points are the true start, so that the points have this share of the episodes."""
    return max(1, round(points * (1 - share) / share))


def start_step(point: int, leg: TrajectoryLeg, controlled: Sequence[int]) -> int | None:
    """The step at which episodes of a point begin, of those at which the hero has control; None: the leg has none.

    It is the first one from the point on. Where the goal's text has begun by then, it is the last one before.
    """
    place = bisect_left(controlled, point)
    if place < len(controlled) and controlled[place] < leg.end:
        return controlled[place]
    return controlled[place - 1] if place and controlled[place - 1] >= leg.begin else None


def longest_episode(rest: int) -> int:
    """Steps until an episode is truncated that begins `rest` steps before its goal."""
    return LENGTHS * rest + MIN_LENGTH


def longest_pass(leg: TrajectoryLeg) -> int:
    """Steps that a pass of a leg may take to be imitated: one that wanders shows no way."""
    return LENGTHS * (leg.end - leg.begin) + OPENING


def earliest_mastered(begin: int, outcomes: Mapping[int, Sequence[bool]], threshold: float) -> int:
    """The earliest point from which the policy reaches the goal in at least this share of the episodes.

    `outcomes` says by point which episodes reached it. `begin` if no earlier point is mastered.
    """
    mastered = [
        point for point, reached in outcomes.items() if len(reached) >= MIN_EPISODES and fmean(reached) >= threshold
    ]
    return min([begin, *mastered])
