"""The backward curriculum: episodes begin ever earlier on one demonstration, as the policy reaches its goal from there.

Salimans & Chen 2018 (arXiv:1812.03381) move one start backwards while the policy trains. Here an epoch tries several
starts at a time, because its order decides all of them; then the next epoch's begin before the earliest mastered one.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from services.trainer.domain.curriculum import SLOTS
from shared.contracts.learning.restarts import RestartsConfig

SPREAD: Final = 50  # points on the whole demonstration
ARRIVED_SHARE: Final = 0.5  # of episodes at most that begin there: what counts then is the way from the true start
ARRIVED_IMITATION: Final = 0.1  # of the weight of imitation: a policy that only repeats cannot correct itself
GOLDEN: Final = (5**0.5 - 1) / 2  # its multiples fill the unit interval evenly
MIN_EPISODES: Final = 3  # from one start; fewer say too little about it
OPENING: Final = 12
"""Most random moves before an episode. Seeds vary only what the game draws by itself, such as enemies: in rooms without
them the same actions would always lead to the goal."""
MIN_LENGTH: Final = 200  # steps; how long an episode may take at least
LENGTHS: Final = 2  # an episode may take so many times as long as the rest of the demonstration


def start_points(begin: int, config: RestartsConfig) -> list[int]:
    """The steps of the demonstration at which episodes begin, latest first; 0 is the true start.

    From `begin` on the policy reaches the goal. The points before it lie close together and then ever farther apart,
    up to `window` strides before it: a policy that knows little reaches it from near, one that knows much from afar.
    """
    numbers = range(1, config.window + 1)
    points = [max(0, begin - max(number, config.stride * number**2 // config.window)) for number in numbers]
    return list(dict.fromkeys(points))


def spread_points(steps: int, epoch: int) -> list[int]:
    """Where episodes begin after the curriculum has arrived at the true start: evenly on the whole demonstration.

    The points are shifted from epoch to epoch.
    """
    phase = epoch * GOLDEN % 1
    return sorted({int((number + phase) * steps / SPREAD) for number in range(SPREAD)})


def point_slots(points: Sequence[int], share: float) -> list[int]:
    """A hundred starts: `share` of them at the points in turn, the others at the true start."""
    count = round(share * SLOTS) if points else 0
    return [points[slot % len(points)] for slot in range(count)] + [0] * (SLOTS - count)


def longest_episode(rest: int) -> int:
    """Steps until an episode is truncated that begins `rest` steps before the end of the demonstration."""
    return LENGTHS * rest + MIN_LENGTH


def earliest_mastered(begin: int, outcomes: Mapping[int, Sequence[bool]], threshold: float) -> int:
    """The earliest point from which the policy reaches the goal in at least this share of the episodes.

    `outcomes` says by point which episodes reached it. `begin` if no earlier point is mastered.
    """
    mastered = [
        point for point, reached in outcomes.items() if len(reached) >= MIN_EPISODES and fmean(reached) >= threshold
    ]
    return min([begin, *mastered])
