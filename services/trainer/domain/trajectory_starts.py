"""Where on one trajectory the episodes of an epoch begin: evenly, so that all of its parts are learnt together."""

from typing import Final

GOLDEN: Final = (5**0.5 - 1) / 2  # its multiples fill the unit interval evenly, so epochs begin at different steps


def spread_points(steps: int, count: int, epoch: int) -> list[int]:
    """`count` steps of a trajectory, evenly spread and shifted from epoch to epoch; fewer if it has fewer steps."""
    phase = epoch * GOLDEN % 1
    return sorted({int((number + phase) * steps / count) for number in range(count)})
